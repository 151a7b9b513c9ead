# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which port of a host is cabled to which port of a switch, as lldpd tells it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from .._printable import printable
from .._refusal import Refusal


@dataclass(frozen=True, order=True)
class Cable:
    """A cable between a port of a host and one of a switch."""

    host: str
    port: str
    switch: str
    switch_port: str


#: What a table of cables says of each.
KEYS = tuple(each.name for each in fields(Cable))
#: The option of modules that take such a table.
ARGUMENT_SPEC: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {key: {"type": "str", "required": True} for key in KEYS},
}


@dataclass(frozen=True, order=True)
class Neighbour:
    """What a neighbour at a port of a host says of itself, which is foreign text."""

    port: str
    """The host's own port."""
    chassis: str
    chassis_port: str
    description: str
    """Of the neighbour's port."""
    chassis_mac: str
    """Empty where the neighbour is identified otherwise."""
    port_mac: str


@dataclass(frozen=True)
class Miswired:
    """A cable that is not as it was meant."""

    rule: str
    host: str
    port: str
    given: str
    wanted: str
    cure: str


def seen(host: str, answer: object) -> list[Cable]:
    """The cables of ``lldpcli -f json show neighbors details``, or of ``-f json0``.

    Raises Refusal where the answer is not lldpcli's.
    """
    return sorted({Cable(host, each.port, each.chassis, each.chassis_port) for each in neighbours(host, answer)})


def neighbours(host: str, answer: object) -> list[Neighbour]:
    """What lldpcli prints of the neighbours of a host.

    lldpcli writes one neighbour as an object and several as a list, json0 always lists. Raises Refusal where the
    answer is not lldpcli's.
    """
    if isinstance(answer, str):
        try:
            answer = json.loads(answer.removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            answer = None
    if not isinstance(answer, Mapping) or "lldp" not in answer:
        raise Refusal(
            f"the neighbours of {host} are no answer of lldpcli: give the output of "
            "'lldpcli -f json show neighbors details'"
        )
    found = set()
    for lldp in _mappings(answer["lldp"]):
        for port, each in _neighbours(lldp.get("interface")):
            found.add(
                Neighbour(
                    port,
                    _chassis(each),
                    _port(each),
                    next((_value(one.get("descr")) for one in _mappings(each.get("port"))), ""),
                    _mac(_identity(each)),
                    next((_mac(one.get("id")) for one in _mappings(each.get("port"))), ""),
                )
            )
    return sorted(found)


def _neighbours(interfaces: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in _mappings(interfaces):
        if isinstance(each.get("name"), str):  # json0
            yield each["name"], each
            continue
        for port, neighbours in each.items():
            for neighbour in _mappings(neighbours):
                yield str(port), neighbour


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, Mapping)]


def _chassis(neighbour: Mapping[str, Any]) -> str:
    """The neighbour's name; its identifier where it tells no name."""
    for chassis in _mappings(neighbour.get("chassis")):
        if "id" in chassis or "name" in chassis:  # json0, or a neighbour without a name
            return _value(chassis.get("name")) or _value(chassis.get("id")) or "?"
        for name in chassis:
            return str(name)
    return "?"


def _identity(neighbour: Mapping[str, Any]) -> Any:
    """The identifier of the neighbour's chassis; outside json0 it stands below the name that it tells."""
    for chassis in _mappings(neighbour.get("chassis")):
        if "id" in chassis or "name" in chassis:
            return chassis.get("id")
        for named in chassis.values():
            return named.get("id") if isinstance(named, Mapping) else None
    return None


def _mac(identifier: Any) -> str:
    """An identifier that is a MAC address; empty for the other kinds."""
    for each in _mappings(identifier):
        return _value(each) if each.get("type") == "mac" else ""
    return ""


def _port(neighbour: Mapping[str, Any]) -> str:
    """The port's name: its identifier, or its description where that is a MAC address."""
    for port in _mappings(neighbour.get("port")):
        number = _value(port.get("id"))
        kind = next((str(each.get("type", "")) for each in _mappings(port.get("id"))), "")
        return (_value(port.get("descr")) if kind == "mac" else "") or number or "?"
    return "?"


def _value(value: Any) -> str:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Mapping):
            return str(each.get("value", ""))
        if isinstance(each, str):
            return each
    return ""


def named(found: Sequence[Cable], known: Collection[str]) -> list[Cable]:
    """The cables with each switch by the site's name for it: switches announce theirs with a domain, or without.

    Where two switches have one first label, each keeps its own name.
    """
    labels = Counter(_label(switch) for switch in {cable.switch for cable in found})

    def of(switch: str) -> str:
        if switch in known or labels[_label(switch)] > 1:
            return switch
        same = [each for each in known if _label(switch) == _label(each) and _label(switch) in (switch, each)]
        return same[0] if len(same) == 1 else switch

    return [replace(cable, switch=of(cable.switch)) for cable in found]


def _label(switch: str) -> str:
    return switch.partition(".")[0]


def once(cables: Sequence[Cable]) -> None:
    """Refuse a table with two cables in one port: one of them would count, and nobody would know which."""
    hosts = [f"{each.host} {each.port}" for each in cables]
    for ends in (hosts, [f"{each.switch} {each.switch_port}" for each in cables]):
        twice = next((each for each in ends if ends.count(each) > 1), "")
        if twice:
            raise Refusal(f"cables has {printable(twice, 200)} more than once: give the cable of each port once")


def _shared(found: Sequence[Cable]) -> dict[tuple[str, str], list[Cable]]:
    """Ports of switches that more than one port of hosts sees."""
    ends: dict[tuple[str, str], list[Cable]] = {}
    for cable in sorted({*found}):
        if "?" not in (cable.switch, cable.switch_port):
            ends.setdefault((cable.switch, cable.switch_port), []).append(cable)
    return {end: cables for end, cables in ends.items() if len(cables) > 1}


def compared(wanted: Sequence[Cable], found: Sequence[Cable], answered: Sequence[str]) -> list[Miswired]:
    """What is cabled otherwise than it was meant. Hosts that are not in ``answered`` are named, not skipped."""
    faults = []
    at = {
        (cable.host, cable.port): [c for c in found if (c.host, c.port) == (cable.host, cable.port)] for cable in found
    }
    meant = {(cable.host, cable.port): cable for cable in wanted}
    ends = {(cable.switch, cable.switch_port): cable for cable in found}
    for host in sorted({cable.host for cable in wanted} - set(answered)):
        cure = "install lldpd there (fabric_lldp) and ask it again"
        faults.append(Miswired("silent", host, "", "no answer of lldpcli", "its neighbours", cure))
    for key, cable in sorted(meant.items()):
        if cable.host not in answered:
            continue
        there = at.get(key, [])
        goal = f"{cable.switch} {cable.switch_port}"
        if not there:
            holder = ends.get((cable.switch, cable.switch_port))
            held = f"; {holder.host} {holder.port} is plugged in there" if holder else ""
            cure = f"plug {cable.port} of {cable.host} into {goal}{held}"
            faults.append(Miswired("missing", cable.host, cable.port, "no neighbour", goal, cure))
        elif len(there) == 1 and there[0] != cable:
            given = f"{there[0].switch} {there[0].switch_port}"
            cure = f"move the cable of {cable.host} {cable.port} from {given} to {goal}"
            faults.append(Miswired("miswired", cable.host, cable.port, given, goal, cure))
    for end, sharing in sorted(_shared(found).items()):
        for cable in sharing:
            others = ", ".join(f"{each.host} {each.port}" for each in sharing if each != cable)
            cure = f"ask these hosts again, as one answer may be old; else find out which switches are called {end[0]}"
            given = f"{' '.join(end)}, which {others} sees, too"
            faults.append(Miswired("shared", cable.host, cable.port, given, "a port of its own", cure))
    for (host, port), there in sorted(at.items()):
        given = ", ".join(f"{each.switch} {each.switch_port}" for each in there)
        if len(there) > 1:
            cure = f"look for a hub or a bridge between {host} {port} and the switch"
            faults.append(Miswired("doubled", host, port, given, "one neighbour", cure))
        elif meant and (host, port) not in meant:
            cure = f"add {host} {port} to the wanted cables, or unplug it"
            faults.append(Miswired("unknown", host, port, given, "no cable", cure))
    return faults
