# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The table of nftables that closes a cluster's ports to everybody but the cluster.

It only drops, and only the first packet of a connection to a port that it names. So it opens nothing that another table
closes, an established connection is never cut, and no connection tracking is needed. All other ports stay as they are.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._printable import printable
from .._refusal import Refusal
from .address import single_host
from .firewall_table import TABLE

_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_MARK = "DIGEST"

#: Looks a name up: the addresses that it has; OSError where it has none.
Resolve = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Group:
    """Ports, and who may open a connection to them."""

    name: str
    ports: Sequence[str]
    sources: Sequence[str]


def groups_of(asked: Mapping[str, Any]) -> list[Group]:
    """The groups of a host, from variables of role firewall. A port belongs to the first group that has it.

    ``trains`` and ``collects`` say what the host is for; of ``jobs`` each may have ports of its own.
    """
    pages, meetings = [*asked["metrics_ports"]], [asked["rendezvous_port"]]
    for job in asked["jobs"]:
        configs = [job.get("config") or {}, job.get("node_config") or {}]
        pages += [port for each in configs if (port := (each.get("metrics") or {}).get("port")) is not None]
        meetings += [job["rdzv_port"]] if "rdzv_port" in job else []
    monitors, admins = [*asked["monitor_addresses"]], [*asked["admin_networks"]]
    administered = asked["collects"] and admins
    return [
        Group("metrics", [port for port in _texts(pages) if port != "0"], monitors),
        Group("admin", [*map(str, asked["admin_ports"])] if administered else [], [*admins, *monitors]),
        Group(
            "cluster",
            [port for port in _texts([*meetings, asked["collective_ports"]]) if port] if asked["trains"] else [],
            [*asked["cluster_addresses"], *asked["extra_cluster_addresses"]],
        ),
    ]


def _texts(ports: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(map(str, ports)))


def host_addresses(hosts: Iterable[Sequence[Any]]) -> list[str]:
    """One address or name for each host, of name, ``gaudi_cluster_address``, ``ansible_host``; each once.

    What a host says of itself opens the ports of all others. So a network is refused, and so are several addresses.
    """
    found: dict[str, None] = {}
    for name, cluster, connection in hosts:
        given = {"gaudi_cluster_address": cluster, "ansible_host": connection, "The name": name}
        variable, value = next((each for each in given.items() if each[1] not in (None, "")), ("The name", name))
        address = single_host(value)
        if address is None:
            raise Refusal(
                f'{variable} of {printable(name, 100)} is "{printable(value, 100)}", which is not the address of one '
                "host: set gaudi_cluster_address of that host to an IP address, such as 10.0.0.12, or to a name; "
                "networks belong into firewall_extra_cluster_addresses"
            )
        found[address] = None
    return list(found)


def resolve(name: str) -> list[str]:
    """The addresses of a name, as this host sees them."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return sorted({str(each[4][0]).partition("%")[0] for each in found})


def networks(given: Iterable[str], look_up: Resolve) -> tuple[list[str], list[str]]:
    """Addresses and networks of IPv4 and of IPv6, each sorted; names are looked up.

    Loopback addresses are left out: a host's own name is often one, and the loopback is never closed.
    """
    found = {network for text in given for network in _networks(text.strip(), look_up) if not network.is_loopback}
    four = sorted(network for network in found if isinstance(network, ipaddress.IPv4Network))
    six = sorted(network for network in found if isinstance(network, ipaddress.IPv6Network))
    return [_written(network) for network in four], [_written(network) for network in six]


def _networks(text: str, look_up: Resolve) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    try:
        return [ipaddress.ip_network(text.strip("[]"), strict=False)]
    except ValueError:
        pass
    try:
        # Neither a network with a fault in it nor nothing is worth a question to a name server.
        if not text or "/" in text:
            raise OSError("that is no network")
        return [ipaddress.ip_network(address) for address in look_up(text)]
    except (OSError, UnicodeError) as error:
        raise Refusal(
            f'The address of "{text}" cannot be known here ({getattr(error, "strerror", None) or error}): set '
            "gaudi_cluster_address of that host, or give addresses or networks, such as 10.0.0.11 or 10.0.0.0/24"
        ) from error


def _written(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def port_ranges(given: Iterable[str]) -> list[str]:
    """Ports and ranges of ports as nftables has them, sorted."""
    found = set()
    for text in given:
        match = _PORTS.fullmatch(text.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= 65535:
            raise Refusal(
                f'"{text}" is no port: give a number from 1 to 65535, or two with a dash between, such as 32768-60999'
            )
        found.add((first, last))
    return [str(first) if first == last else f"{first}-{last}" for first, last in sorted(found)]


def ruleset(open_ports: Sequence[str], groups: Sequence[Group], look_up: Resolve = resolve) -> str:
    """The file that replaces the table as a whole, in one step.

    The first group whose ports have a packet's port decides; ``open_ports`` are open to all before any of them.
    """
    sets, rules = [_set("open_ports", "inet_service", port_ranges(open_ports))], []
    for group in groups:
        ports = port_ranges(group.ports)
        if not ports:
            continue
        sources = networks(group.sources, look_up)
        sets.append(_set(f"{group.name}_ports", "inet_service", ports))
        for version, protocol, addresses in ((4, "ip", sources[0]), (6, "ip6", sources[1])):
            sets.append(_set(f"{group.name}_v{version}", f"ipv{version}_addr", addresses))
            rules.append(f"tcp dport @{group.name}_ports {protocol} saddr @{group.name}_v{version} accept")
        rules.append(f'tcp dport @{group.name}_ports counter drop comment "{group.name} {_MARK}"')
    lines = [
        f"table inet {TABLE}",
        f"delete table inet {TABLE}",
        f"table inet {TABLE} {{",
        *[f"    {line}" for each in sets for line in each],
        "    chain input {",
        "        type filter hook input priority 0; policy accept;",
        '        iifname "lo" accept',
        "        tcp flags & (fin | syn | rst | ack) != syn accept",
        "        tcp dport @open_ports accept",
        *[f"        {rule}" for rule in rules],
        "    }",
        "}",
    ]
    text = "\n".join(["# Managed by gaudi3.scale (role firewall). Changes are lost at its next run.", *lines, ""])
    return text.replace(_MARK, digest(text))


def _set(name: str, kind: str, elements: Sequence[str]) -> list[str]:
    lines = [f"set {name} {{", f"    type {kind}; flags interval; auto-merge;"]
    if elements:
        lines += ["    elements = {", *[f"        {each}," for each in elements], "    }"]
    return [*lines, "}"]


def digest(text: str) -> str:
    """What tells one ruleset from another; each drop of the ruleset carries it as its comment."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
