# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Groups, hosts and variables of clusters, as Ansible takes them, and the way by which ssh gets to each host."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

from .cluster import Cluster, Host, ssh_options


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


def host_vars(cluster: Cluster, host: Host, config: Optional[str] = None) -> dict[str, Any]:
    """A host's variables; what is not known is left out.

    ``config`` is a configuration of ssh that knows the hosts' keys. With it, a machine is known by its
    id, and not by an address that another machine may get later.
    """
    options = ssh_options(cluster, host)
    if config and host.instance_id:
        options["HostKeyAlias"] = host.instance_id
    words = ["-F", config] if config else []
    for name, value in options.items():
        words += ["-o", f"{name}={value}"]
    known = {
        "ansible_host": host.connect_to,
        "ansible_user": host.ssh_user,
        "ansible_port": host.ssh_port,
        "ansible_ssh_common_args": " ".join(map(shlex.quote, words)),
        "gaudi_cluster_address": host.private_ip,
        "gaudi_public_address": host.public_ip,
        "gaudi_instance_id": host.instance_id,
        "gaudi_instance_type": host.instance_type,
        "gaudi_bmc_address": host.bmc,
        "gaudi_market": host.market,
        "gaudi_zone": host.zone,
    }
    return {**{key: value for key, value in known.items() if value}, "ansible_become": host.ssh_user != "root"}


def build_inventory(
    clusters: list[Cluster], given: Optional[list[Optional[str]]] = None, config: Optional[str] = None
) -> Inventory:
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
            inventory.hosts[name] = host_vars(cluster, host, config)
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
