"""The machines that Terraform made, read from its outputs, so that nodes can be simulated in their place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from . import RequestError
from .home import Node
from .network import parse_subnet

_MAX_CARDS = 8


@dataclass(frozen=True)
class Machines:
    """Nodes under the names and addresses that Terraform gave, and the user that ssh goes in as."""

    nodes: list[Node]
    monitor: Node | None
    user: str


def read_machines(text: str) -> Machines:
    """The machines in what ``terraform output -json`` printed; one sentence names what it lacks."""
    try:
        endpoints = json.loads(text)["cluster_endpoints"]["value"]
        hosts = [_host(name, endpoints[name]) for name in sorted(endpoints)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RequestError(
            "--like has no cluster_endpoints: give what 'terraform output -json' prints of a cluster that was applied."
        ) from None
    # The head first, as in Terraform's own inventory.
    nodes = sorted((node for node, role, _user in hosts if role != "monitor"), key=lambda node: node.name)
    heads = [node for node, role, _user in hosts if role == "head"]
    if not heads:
        raise RequestError("--like has no node in it: apply the configuration first.")
    for node in nodes:
        if not 1 <= node.cards <= _MAX_CARDS:
            raise RequestError(f"{node.name} has {node.cards} cards: a simulated node has 1 to {_MAX_CARDS}.")
    monitors = [node for node, role, _user in hosts if role == "monitor"]
    return Machines(
        nodes=[*heads, *(node for node in nodes if node not in heads)],
        monitor=monitors[0] if monitors else None,
        user=hosts[0][2],
    )


def _host(name: str, endpoint: dict[str, Any]) -> tuple[Node, str, str]:
    node = Node(name, str(endpoint["private_ip"]), int(endpoint["cards"]))
    return node, str(endpoint["role"]), str(endpoint["ssh_user"])


def subnet_of(machines: Machines, given: str | None) -> str:
    """The network that carries the addresses: the one given, or the /24 around them; its first two are the simulator's.

    The gateway has the network's first address and the vendor's repository the second, as no cloud gives them to a
    machine.
    """
    hosts = [*machines.nodes, *([machines.monitor] if machines.monitor else [])]
    network = parse_subnet(given) if given else IPv4Network(f"{_address(hosts[0])}/24", strict=False)
    for node in hosts:
        number = int(_address(node)) - int(network.network_address)
        if not 0 <= number < network.num_addresses:
            raise RequestError(
                f"{node.name} has the address {node.address}, which is not in {network}: give the network that holds "
                "all of them with --subnet, such as 10.42.0.0/16."
            )
        if number < 3 or number == network.num_addresses - 1:
            raise RequestError(
                f"{node.name} has the address {node.address}, which the simulator needs for itself in {network}: give "
                "a larger network with --subnet."
            )
    return str(network)


def _address(node: Node) -> IPv4Address:
    try:
        return IPv4Address(node.address)
    except ValueError:
        raise RequestError(f"{node.name} has the address '{node.address}': only IPv4 can be simulated.") from None
