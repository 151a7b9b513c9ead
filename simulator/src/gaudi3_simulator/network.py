"""Networks for clusters that collide with nothing this machine reaches."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Network
from pathlib import Path

from . import RequestError, SimulatorError
from .home import Cluster, clusters

_DEMO_NETWORK = 78
_ROUTES = Path("/proc/net/route")


def taken() -> list[IPv4Network]:
    """Networks of the clusters on record, and those that this machine has a route to: another checkout's, say."""
    found = [IPv4Network(cluster.subnet) for cluster in clusters()]
    for line in _ROUTES.read_text().splitlines()[1:]:
        fields = line.split()
        target, mask = (int.from_bytes(bytes.fromhex(fields[column]), "little") for column in (1, 7))
        if mask:  # without one it is the way to everywhere, and no network
            found.append(IPv4Network((target, mask.bit_count())))
    return found


def free_subnet(name: str) -> str:
    """A network for cluster ``name``; the demo's is the same wherever it is free."""
    used = taken()
    preferred = [_DEMO_NETWORK] if name == "demo" else []
    for number in [*preferred, *range(_DEMO_NETWORK + 1, 250)]:
        subnet = IPv4Network(f"10.89.{number}.0/24")
        if not any(subnet.overlaps(each) for each in used):
            return str(subnet)
    raise SimulatorError("No free network is left for another cluster: take one down with 'gaudi3-simulator down'.")


def parse_subnet(given: str) -> IPv4Network:
    """The network that was given, which must be one."""
    try:
        return IPv4Network(given)
    except ValueError:
        raise RequestError(f"--subnet was {given}: give a network, such as 10.42.0.0/16.") from None


def new_subnet(given: str) -> str:
    """The network that was given for a new cluster, which must collide with none."""
    network = parse_subnet(given)
    for each in taken():
        if network.overlaps(each):
            raise RequestError(
                f"--subnet was {network}, but this machine already reaches {each}: take that cluster down, or give "
                "another network."
            )
    return str(network)


def check_same_subnet(known: Cluster, given: str | None) -> None:
    """Refuse to move a cluster to another network."""
    if given and ipaddress.IPv4Network(known.subnet) != parse_subnet(given):
        raise RequestError(
            f"--subnet was {given}, but cluster {known.name} is on {known.subnet}: leave it out, or take the cluster "
            "down first."
        )
