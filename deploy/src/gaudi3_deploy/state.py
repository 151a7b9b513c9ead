"""Terraform's state as it is read here: what it has, what was not made to its end, and what holds checkpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Where checkpoints lie, and what keeps them readable and closed to others.
STORAGE = frozenset(
    {
        "aws_kms_key",
        "aws_kms_alias",
        "aws_s3_bucket",
        "aws_s3_bucket_public_access_block",
        "aws_s3_bucket_versioning",
        "aws_s3_bucket_server_side_encryption_configuration",
        "aws_s3_bucket_lifecycle_configuration",
        "aws_s3_bucket_policy",
        "aws_s3_bucket_logging",
        "azurerm_storage_account",
        "azurerm_storage_container",
        "azurerm_storage_management_policy",
        "google_storage_bucket",
        "ibm_resource_instance",
        "ibm_cos_bucket",
    }
)
#: What is lost for good where it is replaced: data, or the key to it.
IRREPLACEABLE = frozenset(
    {
        "aws_kms_key",
        "aws_s3_bucket",
        "azurerm_storage_account",
        "azurerm_storage_container",
        "google_storage_bucket",
        "ibm_resource_instance",
        "ibm_cos_bucket",
    }
)
#: The end of the address of what stops the storage from being destroyed, where the cloud has nothing that does.
GUARD = "terraform_data.checkpoints"
#: Machines, of every cloud.
INSTANCES = ("aws_instance", "azurerm_linux_virtual_machine", "google_compute_instance", "ibm_is_instance")
#: What makes and ends machines by itself.
GROUPS = ("aws_autoscaling_group",)


@dataclass(frozen=True)
class Resource:
    """One thing that Terraform made."""

    address: str
    type: str
    tainted: bool
    attributes: Mapping[str, Any] = field(repr=False)
    dependencies: tuple[str, ...] = field(repr=False)

    @property
    def id(self) -> str:
        """The cloud's name of it."""
        return str(self.attributes.get("id") or "")

    @property
    def configured(self) -> str:
        """The address without an index: what one block of the configuration made."""
        return self.address.partition("[")[0] if self.address.endswith("]") else self.address


@dataclass(frozen=True)
class State:
    """A workspace's state."""

    resources: tuple[Resource, ...]
    outputs: Mapping[str, Any]

    def named(self, address: str) -> Resource | None:
        """A resource by the end of its address, such as aws_vpc.cluster; without an index, also the one of a count."""
        ends = (f".{address}", f".{address}[0]")
        return next((each for each in self.resources if f".{each.address}".endswith(ends)), None)

    def of(self, kinds: Iterable[str]) -> list[Resource]:
        """The resources of some types."""
        wanted = frozenset(kinds)
        return [each for each in self.resources if each.type in wanted]

    def nodes(self) -> int:
        """How many machines there are to be paid for, those among them that are not finished; without the monitor."""
        monitor = re.compile(r"\.monitor(\[|$)|-monitor\"\]$")
        machines = [each for each in self.of(INSTANCES) if each.id and not monitor.search(each.address)]
        return len(machines) + sum(int(each.attributes.get("desired_capacity") or 0) for each in self.of(GROUPS))

    def machines_told(self) -> set[str] | None:
        """Ids of the machines that the outputs name, and that a job may so have used; None where they give no ids."""
        named = self.outputs.get("cluster_endpoints") or {}
        if any(not each.get("instance_id") for each in named.values()):
            return None
        return {str(each["instance_id"]) for each in named.values()}

    def storage(self) -> set[str]:
        """Addresses of the storage of checkpoints, and of all that it needs to stay."""
        # A log's bucket is of the same type; it goes with what it is the log of.
        durable = [each for each in self.of(STORAGE) if each.configured.rpartition(".")[2] != "flow"]
        return self.with_needs([*durable, *(each for each in (self.named(GUARD),) if each)])

    def with_needs(self, resources: Iterable[Resource]) -> set[str]:
        """Addresses of these, and of all that they were made with."""
        by_block: dict[str, list[Resource]] = {}
        for each in self.resources:
            by_block.setdefault(each.configured, []).append(each)
        todo, found = [*resources], set[str]()
        while todo:
            each = todo.pop()
            if each.address not in found:
                found.add(each.address)
                todo.extend(needed for block in each.dependencies for needed in by_block.get(block, []))
        return found


def read(text: str) -> State:
    """The state out of what `terraform state pull` prints; empty before the first apply."""
    pulled = json.loads(text) if text.strip() else {}
    found = []
    for resource in pulled.get("resources", []):
        if resource.get("mode") != "managed":
            continue
        address = ".".join(filter(None, (resource.get("module"), resource["type"], resource["name"])))
        for instance in resource.get("instances", []):
            if "deposed" in instance:
                continue
            key = instance.get("index_key")
            found.append(
                Resource(
                    address if key is None else f"{address}[{json.dumps(key)}]",
                    resource["type"],
                    instance.get("status") == "tainted",
                    instance.get("attributes") or {},
                    tuple(instance.get("dependencies") or ()),
                )
            )
    outputs = {name: about.get("value") for name, about in (pulled.get("outputs") or {}).items()}
    return State(tuple(found), outputs)
