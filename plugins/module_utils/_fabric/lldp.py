# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The addresses of a host's external ports, as the switches tell them by LLDP.

A switch describes each of its ports with that port's own address, such as ``gaudi-1 10.200.10.2/30``. The host's port
is the other address of these two, and the gateway is the switch: Intel's network operator reads them the same way.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .._fabric_lint.cabling import Cable, Neighbour, compared, named, neighbours, once
from .._printable import printable
from .._refusal import Refusal
from . import gaudinet

#: No string of LLDP has more bytes.
LONGEST = 255
#: What a message shows of a neighbour's text.
_SHOWN = 80
_ADDRESS = re.compile(r"(?<!\S)([0-9]{1,3}(?:\.[0-9]{1,3}){3})/([0-9]{1,2})(?!\S)")


@dataclass(frozen=True)
class HostPort:
    """An external port of the host: its network device and its own MAC address."""

    name: str
    mac: str


def entries(host: str, ports: Sequence[HostPort], answer: object, cables: Sequence[Cable] = ()) -> list[dict[str, str]]:
    """The entries of gaudinet.json, one for each of the host's ports, in normal form.

    ``answer`` is what lldpcli prints. Where ``cables`` has the host's planned cables, each port has to be plugged in as
    planned. Raises Refusal, which names the first port, where a port has no neighbour or two, where two ports have the
    same one, or where a neighbour does not tell what is needed. Nothing of a neighbour's text is kept but an address
    and a MAC address.
    """
    if not ports:
        raise Refusal(f"{host} shows no external port: load the driver before addresses are taken from LLDP")
    once(cables)
    names = {port.name for port in ports}
    there = [each for each in neighbours(host, answer) if each.port in names]
    single = {port.name: _single(host, port.name, there) for port in sorted(ports, key=lambda port: port.name)}
    _check_shared(host, single)
    _check_plan(host, single, [cable for cable in cables if cable.host == host])
    return gaudinet.checked([_entry(host, port, single[port.name]) for port in ports], {port.mac for port in ports})


def lacking(ports: Sequence[HostPort], host: str, answer: object) -> list[str]:
    """The ports that have no neighbour yet, for whoever waits. Raises Refusal as `entries` does for the answer."""
    known = {each.port for each in neighbours(host, answer)}
    return sorted(port.name for port in ports if port.name not in known)


def _single(host: str, port: str, there: Sequence[Neighbour]) -> Neighbour:
    found = [each for each in there if each.port == port]
    if not found:
        raise Refusal(
            f"port {port} of {host} has no LLDP neighbour: plug it in, bring it up, and have its switch speak LLDP"
        )
    if len(found) > 1:
        listed = " and ".join(_end(each) for each in found[:2])
        raise Refusal(f"port {port} of {host} has {len(found)} LLDP neighbours, {listed}: look for a hub between them")
    for text in (found[0].chassis, found[0].chassis_port, found[0].description):
        if len(text) > LONGEST:
            raise Refusal(
                f"the LLDP neighbour of port {port} of {host} tells a text of {len(text)} characters, and LLDP has at "
                f"most {LONGEST}: look at what is plugged in there"
            )
    return found[0]


def _check_shared(host: str, single: dict[str, Neighbour]) -> None:
    ends: dict[tuple[str, str], str] = {}
    for port, each in single.items():
        other = ends.setdefault((each.chassis, each.chassis_port), port)
        if other != port:
            raise Refusal(
                f"ports {other} and {port} of {host} both claim {_end(each)}: give each port of the switch a name of "
                "its own, and look for a hub between them"
            )


def _check_plan(host: str, single: dict[str, Neighbour], planned: Sequence[Cable]) -> None:
    found = [Cable(host, port, each.chassis, each.chassis_port) for port, each in single.items()]
    faults = compared(planned, named(found, {cable.switch for cable in planned}), [host])
    if faults:
        first = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        said = [printable(text, _SHOWN) for text in (first.given, first.wanted)]
        raise Refusal(
            f"port {first.port} of {host} is plugged into {said[0]}, and the table of cables has {said[1]}{more}: "
            f"{printable(first.cure, 3 * _SHOWN)}"
        )


def _entry(host: str, port: HostPort, neighbour: Neighbour) -> dict[str, str]:
    found = _ADDRESS.findall(neighbour.description)
    told = printable(neighbour.description, _SHOWN)
    what = f"{_end(neighbour)}, at port {port.name} of {host}, is described as {told!r}"
    cure = "describe it with its own address and /30, such as 10.200.10.2/30"
    if len(found) != 1:
        raise Refusal(f"{what}, which has {'no address' if not found else 'several addresses'}: {cure}")
    try:
        switch = ipaddress.IPv4Interface("/".join(found[0]))
    except ValueError:
        raise Refusal(f"{what}, which has no valid address: {cure}") from None
    ends = list(switch.network.hosts()) if switch.network.prefixlen == 30 else []
    if switch.ip not in ends:
        raise Refusal(f"{what}, which is no end of a network of two: {cure}")
    own = ends[1 - ends.index(switch.ip)]
    return {
        "nic_mac": port.mac,
        "nic_ip": str(own),
        "subnet_mask": str(switch.network.netmask),
        "gateway_mac": _gateway(what, neighbour),
    }


def _gateway(what: str, neighbour: Neighbour) -> str:
    """The MAC address of the switch's port, or of the switch where it names its ports otherwise."""
    mac = (neighbour.port_mac or neighbour.chassis_mac).lower()
    if not gaudinet.is_mac(mac) or int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise Refusal(
            f"{what}, and tells no MAC address of its own: have the switch identify itself or its ports by MAC address"
        )
    return mac


def _end(neighbour: Neighbour) -> str:
    return f"{printable(neighbour.chassis, _SHOWN)} {printable(neighbour.chassis_port, _SHOWN)}"
