"""What IBM Cloud has of a cluster and Terraform's state has not: made by a run that was killed before it wrote it down.

IBM takes most names once, so that nothing can be made a second time, and the next run would fail. The tags of a thing
come after it was made; it is known by its name, and by being younger than this deployment. Each is reported by
its address in the module and the id that `terraform import` takes.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gaudi3_deploy.collection._terraform.state import State
from gaudi3_deploy.ibm import Account
from gaudi3_deploy.leftover import Unchecked

Orphans = Iterator[tuple[str, str]]
#: By how much this machine's clock may be ahead of IBM's, in seconds.
SLACK = 300.0
#: Rules of the nodes' group to everywhere, by protocol and port.
OUTBOUND = {("tcp", 80): "http", ("tcp", 443): "https", ("udp", 53): "dns", ("udp", 123): "ntp"}
SERVICES = ("161.26.0.0/16", "166.8.0.0/14")


def on_ibm(region: str, cluster: str, state: State, since: float = 0.0) -> dict[str, str]:
    """Ids by address in the module, of what was made `since` and is not in the state. Raises `Unchecked`."""
    try:
        return _Search(Account(region), cluster, state, since).all()
    except (KeyError, TypeError, ValueError) as error:
        raise Unchecked(f"IBM Cloud's answer was not understood ({error!r})") from None


def left_on_ibm(region: str, cluster: str, since: float = 0.0) -> list[str]:
    """All of it, as kind and id, such as `subnet 0757-...`. Raises `Unchecked`."""
    found = on_ibm(region, cluster, State((), {}), since)
    kinds = {address: address.partition(".")[0].removeprefix("ibm_").removeprefix("is_") for address in found}
    return sorted(f"{kinds[address].replace('_', '-')} {identity}" for address, identity in found.items())


class _Search:
    """One look at an account. What was found before serves to find what belongs to it."""

    def __init__(self, account: Account, cluster: str, state: State, since: float) -> None:
        self._account = account
        self._cluster = cluster
        self._state = state
        self._since = since
        self._found: dict[str, str] = {}

    def all(self) -> dict[str, str]:
        """Look for everything, in the order in which one thing leads to the next."""
        for look in (self._network, self._groups, self._machines, self._names, self._storage, self._access):
            for address, identity in look():
                self._found.setdefault(address, identity)
        return {address: each for address, each in self._found.items() if self._state.named(address) is None}

    def _id(self, address: str) -> str | None:
        """The id of a thing that the state has, or that was found."""
        known = self._state.named(address)
        return known.id if known else self._found.get(address)

    def _ours(self, row: Mapping[str, Any], *names: str) -> str | None:
        """What follows the cluster's name in the name of a thing that was made by this deployment; None of another."""
        made = row.get("created_at")
        if made and datetime.datetime.fromisoformat(str(made)).timestamp() < self._since - SLACK:
            return None
        match = re.fullmatch(rf"{re.escape(self._cluster)}(?:-(.+))?", str(row["name"]))
        rest = (match.group(1) or "") if match else None
        return rest if rest is not None and (not names or rest in names) else None

    @property
    def _vpc(self) -> str | None:
        """The VPC; where it is the user's own, that of the machines' group."""
        group = self._state.named("ibm_is_security_group.nodes")
        return self._id("ibm_is_vpc.cluster[0]") or (str(group.attributes["vpc"]) if group else None)

    def _network(self) -> Orphans:
        """The VPC and its parts."""
        for vpc in self._account.vpc("vpcs"):
            if self._ours(vpc, "") is not None:
                yield "ibm_is_vpc.cluster[0]", vpc["id"]
        vpc_id = self._vpc
        if vpc_id is None:
            return
        for prefix in self._account.vpc(f"vpcs/{vpc_id}/address_prefixes"):
            if self._ours(prefix, "") is not None:
                yield "ibm_is_vpc_address_prefix.cluster[0]", f"{vpc_id}/{prefix['id']}"
        for gateway in self._account.vpc("public_gateways"):
            if gateway["vpc"]["id"] == vpc_id and self._ours(gateway, "") is not None:
                yield "ibm_is_public_gateway.cluster[0]", gateway["id"]
        for subnet in self._account.vpc("subnets"):
            rest = self._ours(subnet) if subnet["vpc"]["id"] == vpc_id else None
            if rest == "nodes":
                yield "ibm_is_subnet.nodes[0]", subnet["id"]
            elif rest and (match := re.fullmatch(r"data-(\d+)", rest)):
                yield f"ibm_is_subnet.data[{int(match.group(1)) - 1}]", subnet["id"]

    def _groups(self) -> Orphans:
        """Security groups and their rules, by what these let through."""
        vpc_id = self._vpc
        places = {"nodes": "ibm_is_security_group.nodes", "monitor": "ibm_is_security_group.monitor[0]"}
        for group in self._account.vpc("security_groups", **{"vpc.id": vpc_id}) if vpc_id else ():
            rest = self._ours(group, *places)
            if rest is None:
                continue
            yield places[rest], group["id"]
            for rule in group["rules"]:
                if place := self._rule(rest, group["id"], rule):
                    yield f"ibm_is_security_group_rule.{place}", f"{group['id']}.{rule['id']}"

    def _rule(self, owner: str, group: str, rule: Mapping[str, Any]) -> str | None:
        remote = rule.get("remote") or {}
        cidr, port = remote.get("cidr_block") or remote.get("address"), rule.get("port_min")
        inbound = rule["direction"] == "inbound"
        if owner == "monitor":
            return f'monitor["{port} {cidr}"]' if inbound and cidr and port else None
        if remote.get("id") == group:
            return f'self["{rule["direction"]}"]'
        if inbound:
            return f'inbound["{port} {cidr}"]' if cidr and port else None
        if cidr in SERVICES:
            return f'services["{cidr}"]'
        name = OUTBOUND.get((str(rule.get("protocol")), int(port or 0)))
        return f'outbound["{name}"]' if name and cidr == "0.0.0.0/0" else None

    def _machines(self) -> Orphans:
        """Machines, and the address of the one that is the way in."""
        vpc_id = self._vpc
        for machine in self._account.vpc("instances", **{"vpc.id": vpc_id}) if vpc_id else ():
            rest = self._ours(machine)
            if rest == "monitor":
                yield "ibm_is_instance.monitor[0]", machine["id"]
            elif rest and re.fullmatch(r"\d{2,}", rest):
                yield f'ibm_is_instance.node["{machine["name"]}"]', machine["id"]
        for address in self._account.vpc("floating_ips"):
            if self._ours(address, "entry") is not None:
                yield "ibm_is_floating_ip.entry[0]", address["id"]

    def _names(self) -> Orphans:
        """What has no place in the network."""
        for key in self._account.vpc("keys"):
            if self._ours(key, "") is not None:
                yield "ibm_is_ssh_key.cluster[0]", key["id"]
        for log in self._account.vpc("flow_log_collectors"):
            if self._ours(log, "") is not None:
                yield "ibm_is_flow_log.cluster[0]", log["id"]

    def _storage(self) -> Orphans:
        """The storage instance, its buckets, the trainer's key pair."""
        for each in self._account.controlled("resource_instances", f"{self._cluster}-storage"):
            if self._ours(each, "storage") is not None and each.get("state", "active") == "active":
                yield "ibm_resource_instance.storage", each["id"]
        storage = self._id("ibm_resource_instance.storage")
        if storage is None:
            return
        for bucket in self._account.buckets(_guid(storage)):
            identity = f"{storage.removesuffix('::')}:bucket:{bucket}:meta:rl:{self._account.region}:public"
            match = re.fullmatch(rf"{re.escape(self._cluster)}-(checkpoints|flow)-[0-9a-f]{{12}}", bucket)
            if match:
                yield f"ibm_cos_bucket.{'checkpoints' if match.group(1) == 'checkpoints' else 'flow[0]'}", identity
        for key in self._account.controlled("resource_keys", f"{self._cluster}-checkpoints"):
            if self._ours(key, "checkpoints") is not None:
                yield "ibm_resource_key.checkpoints[0]", key["id"]

    def _access(self) -> Orphans:
        """Who may use the storage."""
        own = {
            "ibm_iam_trusted_profile.node": ("v1/profiles", "profiles", "node"),
            "ibm_iam_service_id.checkpoints[0]": ("v1/serviceids", "serviceids", "checkpoints"),
        }
        policies = {
            "ibm_iam_trusted_profile.node": "ibm_iam_trusted_profile_policy.checkpoints",
            "ibm_iam_service_id.checkpoints[0]": "ibm_iam_service_policy.checkpoints[0]",
        }
        for address, (path, listed, name) in own.items():
            for each in self._account.iam(path, listed, name=f"{self._cluster}-{name}"):
                if self._ours(each, name) is not None:
                    yield address, each["id"]
            identity = self._id(address)
            for policy in self._policies(iam_id=f"iam-{identity}", type="access") if identity else ():
                yield policies[address], f"{identity}/{policy['id']}"
        for role in self._account.iam("v2/roles", "custom_roles"):
            if role.get("display_name") == f"{self._cluster} checkpoint pruning":
                yield "ibm_iam_custom_role.prune", role["id"]
        storage = self._id("ibm_resource_instance.storage")
        for policy in self._policies(type="authorization") if storage else ():
            values = {each["value"] for one in policy["resources"] for each in one["attributes"]}
            if _guid(str(storage)) in values:
                yield "ibm_iam_authorization_policy.flow[0]", policy["id"]

    def _policies(self, **query: str) -> Iterator[dict[str, Any]]:
        return (
            each for each in self._account.iam("v1/policies", "policies", **query) if each.get("state") != "deleted"
        )


def _guid(crn: str) -> str:
    """Of a storage instance, out of its CRN."""
    return crn.removesuffix("::").rpartition(":")[2]
