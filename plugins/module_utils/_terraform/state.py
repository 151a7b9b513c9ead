# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Clusters out of Terraform's outputs and state, and what is wrong with a state that is not whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._refusal import Refusal

#: What the modules of terraform/ put out beside the inventory itself.
OUTPUTS = ("cluster", "cluster_endpoints")


@dataclass(frozen=True)
class Host:
    """A machine of a cluster."""

    name: str
    #: head, worker or monitor.
    role: str
    private_ip: str
    #: What ssh connects to: an address, or an instance id where ssh goes through a cloud's own service.
    connect_to: str
    ssh_user: str
    public_ip: Optional[str] = None
    instance_id: Optional[str] = None
    instance_type: Optional[str] = None
    zone: Optional[str] = None
    market: Optional[str] = None
    cards: int = 0
    #: None for ssh's own.
    ssh_port: Optional[int] = None
    #: In place of the cluster's.
    ssh_arguments: Optional[str] = None
    #: Address of the machine's management controller.
    bmc: Optional[str] = None

    @classmethod
    def from_output(cls, name: str, said: Mapping[str, Any]) -> Host:
        """Read an entry of the output ``cluster_endpoints``."""
        texts = ("role", "private_ip", "public_ip", "instance_id", "instance_type", "zone", "market", "ssh_user", "bmc")
        known: dict[str, Any] = {key: said.get(key) or None for key in texts}
        return cls(
            name=name,
            cards=int(said.get("cards") or 0),
            ssh_port=int(said["ssh_port"]) if said.get("ssh_port") else None,
            ssh_arguments=said.get("ssh_arguments"),
            connect_to=said.get("connect_to") or known["private_ip"] or "",
            **{**known, "private_ip": known["private_ip"] or "", "ssh_user": known["ssh_user"] or ""},
        )


@dataclass(frozen=True)
class Cluster:
    """What one Terraform project made."""

    name: str
    cloud: str
    region: Optional[str]
    #: In their order, the head first.
    nodes: tuple[Host, ...]
    monitor: Optional[Host]
    ssh_arguments: str = ""
    checkpoint_target: Optional[str] = None
    #: Further variables of all its hosts.
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Nodes and monitor."""
        return self.nodes + ((self.monitor,) if self.monitor else ())


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


def managed(state: Mapping[str, Any]) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """(type, address, instance) of all that Terraform made and keeps."""
    for resource in state.get("resources", []):
        if resource.get("mode") != "managed":
            continue
        address = ".".join(filter(None, (resource.get("module"), resource.get("type"), resource.get("name"))))
        for instance in resource.get("instances", []):
            key = instance.get("index_key")
            place = "" if key is None else f"[{json.dumps(key)}]"
            yield resource.get("type", ""), address + place, instance


def check_state(state: Mapping[str, Any], source: str, again: str) -> None:
    """Raise where an apply or a destroy was not finished. ``again`` says how to finish it."""
    everything = list(managed(state))
    if not everything and not state.get("outputs"):
        raise Refusal(f"{source} holds no machines: make them first, with {again}.")
    if not state.get("outputs"):
        raise Refusal(
            f"{source} is half applied, with {len(everything)} resources and no outputs: finish it with {again}, "
            "or remove what is there with 'terraform destroy'."
        )
    tainted = [address for _type, address, instance in everything if instance.get("status") == "tainted"]
    if tainted:
        raise Refusal(
            f"{source} is half applied, as {', '.join(tainted)} was not made to its end: replace it with {again}."
        )
    endpoints = value_of(state["outputs"], "cluster_endpoints", source)
    for kind, address, instance in everything:
        if kind != "terraform_data" or ".intent" not in address:
            continue
        asked = ((instance.get("attributes") or {}).get("output") or {}).get("value") or {}
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


def value_of(outputs: Mapping[str, Any], name: str, source: str) -> Any:
    """The value of an output."""
    output = outputs.get(name)
    if not isinstance(output, Mapping) or not isinstance(output.get("value"), Mapping):
        raise Refusal(
            f"{source} has no output {name}: give a project of terraform/aws, azure, gcp, ibm or onprem, or pass their "
            "outputs on in yours."
        )
    return output["value"]


def cluster_from_outputs(outputs: Mapping[str, Any], source: str, again: str) -> Cluster:
    """The cluster that outputs describe (as ``terraform output -json`` prints them, or as a state holds them)."""
    if not outputs:
        raise Refusal(f"{source} has no outputs: make the machines first, with {again}.")
    about, endpoints = (value_of(outputs, name, source) for name in OUTPUTS)
    hosts = [Host.from_output(name, said) for name, said in sorted(endpoints.items())]
    unfinished = sorted(host.name for host in hosts if not host.private_ip)
    if unfinished:
        raise Refusal(
            f"{source} is half applied, as {', '.join(unfinished)} has no address yet: finish it with {again}."
        )
    order = {name: index for index, name in enumerate(about.get("node_names") or [])}
    nodes = sorted(
        (host for host in hosts if host.role != "monitor"), key=lambda host: order.get(host.name, len(order))
    )
    if not nodes or set(order) != {host.name for host in nodes} or nodes[0].role != "head":
        raise Refusal(
            f"{source} is half applied: its cluster has {len(order)} nodes, and {len(nodes)} have addresses; finish it "
            f"with {again}."
        )
    return Cluster(
        name=about.get("name") or "cluster",
        cloud=about.get("cloud") or "cloud",
        region=about.get("region"),
        nodes=tuple(nodes),
        monitor=next((host for host in hosts if host.role == "monitor"), None),
        ssh_arguments=about.get("ssh_arguments") or "",
        checkpoint_target=about.get("checkpoint_target"),
        variables=about.get("variables") or {},
    )


@dataclass
class Inventory:
    """Groups and variables, ready for Ansible."""

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Group to hosts, in order.
    groups: dict[str, list[str]] = field(default_factory=dict)
    group_vars: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, group: str, host: str) -> None:
        """Put a host into a group, once."""
        members = self.groups.setdefault(group, [])
        if host not in members:
            members.append(host)


def group_name(text: str) -> str:
    """A text as Ansible wants group names."""
    return "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in text)


def labels(clusters: Iterable[Cluster], given: Iterable[Optional[str]]) -> list[str]:
    """A different word for each cluster: the one given, else its cloud, else cloud and name, else with a number."""
    found: list[str] = []
    clusters = list(clusters)
    for cluster, label in zip(clusters, given):
        same = [other for other in clusters if other.cloud == cluster.cloud]
        word = label or (cluster.cloud if len(same) == 1 else f"{cluster.cloud}-{cluster.name}")
        number = 2
        base = word
        while word in found:
            word = f"{base}-{number}"
            number += 1
        found.append(word)
    return found


def host_vars(cluster: Cluster, host: Host) -> dict[str, Any]:
    """A host's variables; what is not known is left out."""
    known = {
        "ansible_host": host.connect_to,
        "ansible_user": host.ssh_user,
        "ansible_port": host.ssh_port,
        "ansible_ssh_common_args": cluster.ssh_arguments if host.ssh_arguments is None else host.ssh_arguments,
        "gaudi_cluster_address": host.private_ip,
        "gaudi_public_address": host.public_ip,
        "gaudi_instance_id": host.instance_id,
        "gaudi_instance_type": host.instance_type,
        "gaudi_bmc_address": host.bmc,
        "gaudi_market": host.market,
        "gaudi_zone": host.zone,
    }
    return {**{key: value for key, value in known.items() if value}, "ansible_become": host.ssh_user != "root"}


def build_inventory(clusters: list[Cluster], given: Optional[list[Optional[str]]] = None) -> Inventory:
    """Several clusters side by side.

    Each has a group by its label and one by its cloud; names that occur twice get their label in front. The group
    ``gaudi_head`` holds the first cluster's head, as a playbook trains on one cluster at a time; on the others' hosts
    ``trainer_nodes`` and ``trainer_head`` say what theirs are.
    """
    words = labels(clusters, given or [None] * len(clusters))
    names = [host.name for cluster in clusters for host in cluster.hosts]
    inventory = Inventory(groups={"gaudi": [], "gaudi_head": [], "monitoring": []})
    for cluster, word in zip(clusters, words):
        called = {
            host.name: f"{word}-{host.name}" if names.count(host.name) > 1 else host.name for host in cluster.hosts
        }
        for host in cluster.hosts:
            name = called[host.name]
            inventory.hosts[name] = host_vars(cluster, host)
            for group in (group_name(cluster.cloud), group_name(word)):
                inventory.put(group, name)
            inventory.put("monitoring" if host.role == "monitor" else "gaudi", name)
        head = called[cluster.nodes[0].name]
        if not cluster.monitor:
            inventory.put("monitoring", head)
        if not inventory.groups["gaudi_head"]:
            inventory.put("gaudi_head", head)
        about: dict[str, Any] = {"gaudi_cloud": cluster.cloud, "gaudi_cluster": cluster.name}
        about.update({"gaudi_region": cluster.region} if cluster.region else {})
        about.update({"gaudi_checkpoint_target": cluster.checkpoint_target} if cluster.checkpoint_target else {})
        about.update(cluster.variables)
        if len(clusters) > 1:
            about.update(trainer_nodes=[called[node.name] for node in cluster.nodes], trainer_head=head)
        inventory.group_vars[group_name(word)] = about
    return inventory
