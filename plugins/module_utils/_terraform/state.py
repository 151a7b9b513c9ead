# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Terraform's state: what it has, what of it holds checkpoints, and whether an apply came to its end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._refusal import Refusal

#: Resources that are machines: to destroy or replace one ends what runs on it.
MACHINES = frozenset({"aws_instance", "azurerm_linux_virtual_machine", "google_compute_instance", "ibm_is_instance"})
#: Resources that make and end machines by themselves.
GROUPS = frozenset({"aws_autoscaling_group"})
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
#: Where checkpoints lie, and what keeps them readable and closed to others.
STORAGE = IRREPLACEABLE | {
    "aws_kms_alias",
    "aws_s3_bucket_public_access_block",
    "aws_s3_bucket_versioning",
    "aws_s3_bucket_server_side_encryption_configuration",
    "aws_s3_bucket_lifecycle_configuration",
    "aws_s3_bucket_policy",
    "aws_s3_bucket_logging",
    "azurerm_storage_management_policy",
}
#: The end of the address of what stops the storage from being destroyed, where the cloud has nothing that does.
GUARD = "terraform_data.checkpoints"
MONITOR = re.compile(r"\.monitor(\[|$)|-monitor\"\]$")


@dataclass(frozen=True)
class Resource:
    """One thing that Terraform made."""

    address: str
    type: str
    tainted: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    dependencies: tuple[str, ...] = field(default=(), repr=False)

    @property
    def id(self) -> str:
        """The cloud's name of it."""
        return str(self.attributes.get("id") or "")

    @property
    def configured(self) -> str:
        """The address without an index: what one block of the configuration made."""
        return self.address.partition("[")[0] if self.address.endswith("]") else self.address

    @property
    def is_of_a_log(self) -> bool:
        """Whether flow logs lie in it: a log's bucket is of the same type as that of checkpoints."""
        return self.configured.rpartition(".")[2] == "flow"


@dataclass(frozen=True)
class State:
    """A workspace's state."""

    resources: tuple[Resource, ...] = ()
    #: Values by name.
    outputs: Mapping[str, Any] = field(default_factory=dict)

    def named(self, address: str) -> Optional[Resource]:
        """A resource by the end of its address, such as aws_vpc.cluster; without an index, also the one of a count."""
        ends = (f".{address}", f".{address}[0]")
        return next((each for each in self.resources if f".{each.address}".endswith(ends)), None)

    def of(self, kinds: Iterable[str]) -> list[Resource]:
        """The resources of some types."""
        wanted = frozenset(kinds)
        return [each for each in self.resources if each.type in wanted]

    def nodes(self) -> int:
        """How many machines there are to be paid for, those among them that are not finished; without the monitor."""
        machines = [each for each in self.of(MACHINES) if each.id and not MONITOR.search(each.address)]
        return len(machines) + sum(int(each.attributes.get("desired_capacity") or 0) for each in self.of(GROUPS))

    def machines_told(self) -> Optional[set[str]]:
        """Ids of the machines that the outputs name, and that a job may so have used; None where they give no ids."""
        named = self.outputs.get("cluster_endpoints") or {}
        if any(not each.get("instance_id") for each in named.values()):
            return None
        return {str(each["instance_id"]) for each in named.values()}

    def storage(self) -> set[str]:
        """Addresses of the storage of checkpoints, and of all that it needs to stay."""
        durable = [each for each in self.of(STORAGE) if not each.is_of_a_log]
        return self.with_needs([*durable, *(each for each in (self.named(GUARD),) if each)])

    def with_needs(self, resources: Iterable[Resource]) -> set[str]:
        """Addresses of these, and of all that they were made with."""
        by_block: dict[str, list[Resource]] = {}
        for each in self.resources:
            by_block.setdefault(each.configured, []).append(each)
        todo = [*resources]
        found: set[str] = set()
        while todo:
            each = todo.pop()
            if each.address not in found:
                found.add(each.address)
                todo.extend(needed for block in each.dependencies for needed in by_block.get(block, []))
        return found


def read_json(text: str, source: str) -> dict[str, Any]:
    """A JSON object, or a sentence on what ``source`` is instead."""
    try:
        read = json.loads(text)
    except ValueError:
        raise Refusal(f"{source} is not JSON: give a state file, or what 'terraform output -json' printed.") from None
    if not isinstance(read, dict):
        raise Refusal(f"{source} is not an object: give a state file, or what 'terraform output -json' printed.")
    return read


def is_state(read: Mapping[str, Any]) -> bool:
    """Whether this is a state, and not outputs alone."""
    return isinstance(read.get("resources"), list) and "terraform_version" in read


def read_state(pulled: Mapping[str, Any]) -> State:
    """The state out of what ``terraform state pull`` prints; empty before the first apply."""
    found = []
    for resource in pulled.get("resources", []):
        if resource.get("mode") != "managed":
            continue
        address = ".".join(filter(None, (resource.get("module"), resource.get("type"), resource.get("name"))))
        for instance in resource.get("instances", []):
            if "deposed" in instance:
                continue
            key = instance.get("index_key")
            found.append(
                Resource(
                    address if key is None else f"{address}[{json.dumps(key)}]",
                    resource.get("type", ""),
                    instance.get("status") == "tainted",
                    instance.get("attributes") or {},
                    tuple(instance.get("dependencies") or ()),
                )
            )
    outputs = {name: about.get("value") for name, about in (pulled.get("outputs") or {}).items()}
    return State(tuple(found), outputs)


def check_state(state: State, source: str, again: str) -> None:
    """Raise where an apply or a destroy was not finished. ``again`` says how to finish it."""
    if not state.resources and not state.outputs:
        raise Refusal(f"{source} holds no machines: make them first, with {again}.")
    if not state.outputs:
        raise Refusal(
            f"{source} is half applied, with {len(state.resources)} resources and no outputs: finish it with {again}, "
            "or remove what is there with 'terraform destroy'."
        )
    tainted = [each.address for each in state.resources if each.tainted]
    if tainted:
        raise Refusal(
            f"{source} is half applied, as {', '.join(tainted)} was not made to its end: replace it with {again}."
        )
    endpoints = mapping_of(state.outputs, "cluster_endpoints", source)
    for each in state.of(["terraform_data"]):
        if ".intent" not in each.address:
            continue
        asked = (each.attributes.get("output") or {}).get("value") or {}
        wanted = set(asked.get("names") or [])
        if wanted and wanted != set(endpoints):
            missing = ", ".join(sorted(wanted - set(endpoints))) or "nothing"
            left = ", ".join(sorted(set(endpoints) - wanted)) or "nothing"
            raise Refusal(
                f"{source} is half applied: asked for and not there is {missing}, there and no longer asked for is "
                f"{left}; finish it with {again}."
            )
        if not wanted and asked.get("hosts", len(endpoints)) != len(endpoints):
            raise Refusal(
                f"{source} is half applied, with {len(endpoints)} of {asked['hosts']} hosts: finish it with {again}, "
                "or bring it up to date with 'terraform apply -refresh-only'."
            )


def values_of(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The values of outputs, whether ``terraform output -json`` printed them or they are the values already."""
    about = {"value", "type", "sensitive"}
    if all(isinstance(each, Mapping) and "value" in each and each.keys() <= about for each in outputs.values()):
        return {name: each["value"] for name, each in outputs.items()}
    return dict(outputs)


def mapping_of(outputs: Mapping[str, Any], name: str, source: str) -> Mapping[str, Any]:
    """The value of an output that is a mapping."""
    value = outputs.get(name)
    if not isinstance(value, Mapping):
        raise Refusal(
            f"{source} has no output {name}: give a project of terraform/aws, azure, gcp, ibm or onprem, or pass their "
            "outputs on in yours."
        )
    return value
