# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The rules: what each port of a switch is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from .._refusal import Refusal
from . import cumulus, eos, nxos, sonic
from .model import Port, Switch

_READERS = {"sonic": sonic.read, "eos": eos.read, "cumulus": cumulus.read, "nxos": nxos.read}
SYNTAXES = tuple(sorted(_READERS))
#: What a site can want of every port.
ASKED = ("mtu", "pfc", "dscp", "ecn", "vlan")
RULES = (*ASKED, "host-mtu", "no-port", "no-switch", "unread")


@dataclass(frozen=True)
class Wanted:
    """What the site wants of every port. What is None, or empty, is not judged."""

    mtu: Optional[int] = None
    pfc: Optional[frozenset[int]] = None
    dscp: dict[int, int] = field(default_factory=dict)
    ecn: dict[int, tuple[int, int]] = field(default_factory=dict)
    vlan: Optional[int] = None


@dataclass(frozen=True)
class Finding:
    """A disagreement between a port and what the site wants of it."""

    switch: str
    port: str
    rule: str
    given: str
    wanted: str
    cure: str


def wanted(given: Mapping[str, object]) -> Wanted:
    """What the site wants, from its variables. Raises Refusal where a value is not one that a switch can have."""
    mtu, vlan = given.get("mtu"), given.get("vlan")
    if mtu is not None and not (isinstance(mtu, int) and 576 <= mtu <= 16000):
        raise Refusal(f"the wanted mtu is {mtu}: give bytes from 576 to 16000")
    if vlan is not None and not (isinstance(vlan, int) and 1 <= vlan <= 4094):
        raise Refusal(f"the wanted vlan is {vlan}: give a number from 1 to 4094")
    pfc = given.get("pfc")
    priorities = None
    if pfc is not None:
        priorities = frozenset(_number("pfc", each, 7) for each in (pfc if isinstance(pfc, list) else [pfc]))
    dscp = {_number("dscp", k, 63): _number("priority of dscp", v, 7) for k, v in _pairs(given, "dscp")}
    ecn = {}
    for key, limits in _pairs(given, "ecn"):
        low, high = (limits.get("min"), limits.get("max")) if isinstance(limits, Mapping) else (None, None)
        if not (isinstance(low, int) and isinstance(high, int) and 0 < low <= high):
            raise Refusal(
                f"the wanted ecn of priority {key} is {limits}: give min and max in bytes, "
                "such as min 150000, max 1500000"
            )
        ecn[_number("priority of ecn", key, 7)] = (low, high)
    return Wanted(mtu, priorities, dscp, ecn, vlan)


def _pairs(given: Mapping[str, object], name: str) -> list[tuple[object, object]]:
    value = given.get(name) or {}
    if not isinstance(value, Mapping):
        raise Refusal(f"the wanted {name} is {value}: give a dictionary")
    return list(value.items())


def _number(what: str, value: object, most: int) -> int:
    text = str(value)
    if not text.isdecimal() or len(text) > 3 or int(text) > most:
        raise Refusal(f"the wanted {what} {text[:60]} is none: give a number from 0 to {most}")
    return int(text)


def read(name: str, syntax: str, text: str) -> Switch:
    """A switch from its configuration. Raises Refusal, which names the switch, where the text cannot be read."""
    try:
        return _READERS[syntax](name, text)
    except Refusal as refusal:
        raise Refusal(f"switch {name}: {refusal}") from None


def lint(
    switch: Switch, ports: Sequence[str], goal: Wanted, host_mtus: Optional[Mapping[str, int]] = None
) -> list[Finding]:
    """What is wrong on these ports. ``host_mtus`` is the frame size of the host behind each port, where it is known."""
    findings = []
    for name in ports:
        port = switch.ports.get(name)
        if port is None:
            cure = f"compare the name with the configuration, which has {len(switch.ports)} ports"
            findings.append(Finding(switch.name, name, "no-port", "not in the configuration", "a port", cure))
            continue
        findings += _port(switch.name, port, goal, (host_mtus or {}).get(name))
    for unread in switch.unread:
        if not unread.port or unread.port in ports:
            cure = "look at it by hand: the linter does not know what it does"
            given = f"{unread.location}: {unread.text}"
            findings.append(Finding(switch.name, unread.port, "unread", given, "a setting that is understood", cure))
    return findings


def _port(switch: str, port: Port, goal: Wanted, host_mtu: Optional[int]) -> list[Finding]:
    found = []

    def add(rule: str, given: str, want: str, cure: str) -> None:
        found.append(Finding(switch, port.name, rule, given, want, cure))

    if goal.mtu is not None and (port.mtu is None or port.mtu < goal.mtu):
        add("mtu", _or_none(port.mtu), f"{goal.mtu} or more", f"set the MTU of {port.name} to {goal.mtu}")
    if host_mtu is not None and (port.mtu is None or port.mtu < host_mtu):
        cure = f"set the MTU of {port.name} to {host_mtu} or more: the host behind it sends frames of {host_mtu}"
        add("host-mtu", _or_none(port.mtu), f"{host_mtu} or more", cure)
    if goal.pfc is not None and port.pfc != goal.pfc:
        cure = f"pause priorities {_listed(goal.pfc)} and no other on {port.name}"
        add("pfc", _listed(port.pfc), _listed(goal.pfc), cure)
    for dscp, priority in sorted(goal.dscp.items()):
        there = port.dscp.get(dscp)
        if there != priority:
            given = f"DSCP {dscp} to {'no priority' if there is None else f'priority {there}'}"
            want = f"priority {priority}"
            add("dscp", given, want, f"have {port.name} trust DSCP and map {dscp} to {want}")
    for queue, limits in sorted(goal.ecn.items()):
        marks = port.ecn.get(queue)
        if marks != limits:
            given = "no marking" if marks is None else f"{marks[0]} to {marks[1]} bytes"
            want = f"{limits[0]} to {limits[1]} bytes"
            add("ecn", f"priority {queue}: {given}", want, f"mark priority {queue} on {port.name} from {want}")
    if goal.vlan is not None and port.vlan != goal.vlan:
        add("vlan", _or_none(port.vlan), str(goal.vlan), f"make {goal.vlan} the untagged VLAN of {port.name}")
    return found


def _or_none(value: Optional[int]) -> str:
    return "none is set" if value is None else str(value)


def _listed(values: frozenset[int] | set[int]) -> str:
    return ", ".join(str(each) for each in sorted(values)) or "none"
