# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Cumulus Linux: the commands that ``nv config show -o commands`` prints."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .._refusal import Refusal
from .model import Port, Switch, Unread, about_subject, numbers, whole

_RANGE = re.compile(r"(?<!\d)(\d{1,4})-(\d{1,4})(?!\d)")
#: Commands about other subjects whatever words are in them: names, tags that are carried, interfaces of VLANs.
_OTHERS = re.compile(
    r"(system|router|vrf|service|evpn|nve|mlag|platform) .*|interface \S+ description .*"
    r"|(interface \S+ )?bridge domain \S+ (vlan|type|vlan-vni-offset|multicast|stp)( .*)?"
)
#: No switch has more ports than a name with ranges may stand for.
_MOST_PORTS = 2048
#: Nor has a port a longer name, with as many ranges as Python can call itself.
_LONGEST_NAME = 200
#: What a port has where it names no profile of its own.
_DEFAULT = "default-global"


@dataclass
class _Profiles:
    """What the profiles say, and which of them each port has."""

    pauses: dict[str, set[int]] = field(default_factory=dict)
    maps: dict[str, dict[int, int]] = field(default_factory=dict)
    trusts: dict[str, str] = field(default_factory=dict)
    marks: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    of_port: dict[tuple[str, str], str] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    """Of each port, the bridge that it is a port of."""
    untagged: dict[str, int] = field(default_factory=dict)
    """The VLAN of frames without a tag of each bridge, for ports that have none of their own."""


def names(text: str) -> list[str]:
    """The ports of ``swp1-3,swp7``, ``swp1-3,7`` and ``swp1-2s0-3``."""
    found: list[str] = []
    before = ""
    for part in text.split(","):
        named = part
        if part[:1].isdigit() and before:
            named = before + part
        else:
            before = re.sub(r"\d.*", "", part)
        found += _spread(named)
    return found


def _spread(text: str) -> list[str]:
    """The names that a name with ranges stands for; itself where it has none."""
    span = _RANGE.search(text)
    if span is None or len(text) > _LONGEST_NAME or int(span[1]) > int(span[2]):
        return [text]
    rest = _spread(text[span.end() :]) if span.end() < len(text) else [""]
    numbered = range(int(span[1]), int(span[2]) + 1)
    if len(numbered) * len(rest) > _MOST_PORTS:
        return [text]
    return [f"{text[: span.start()]}{number}{end}" for number in numbered for end in rest]


def read(name: str, text: str) -> Switch:
    """The switch of these commands. Raises Refusal where no command of a port is among them."""
    switch = Switch(name, "cumulus")
    profiles = _Profiles()
    for number, raw in enumerate(text.splitlines(), start=1):
        words = raw.split()
        if not words or words[0].startswith("#"):
            continue
        known = words[:2] == ["nv", "set"] and _command(switch, profiles, words[2:])
        # A port is there as soon as any command is about it.
        ports = names(words[3]) if words[:3] == ["nv", "set", "interface"] and len(words) > 3 else []
        for each in ports:
            if each.startswith("swp"):
                switch.ports.setdefault(each, Port(each))
        if known:
            continue
        if about_subject(raw) and not _OTHERS.fullmatch(" ".join(words[2:])):
            line = " ".join(words)
            switch.unread.extend(Unread(f"line {number}", line, port) for port in ports or [""])
        else:
            switch.others += 1
    if not switch.ports:
        raise Refusal("the configuration sets no interface swp...: give Cumulus' 'nv config show -o commands'")
    for port in switch.ports.values():
        _profiles(switch, profiles, port)
    return switch


def _command(switch: Switch, profiles: _Profiles, given: list[str]) -> bool:
    """Whether the command was understood, and then has been followed."""
    text = " ".join(given)
    found = re.fullmatch(r"interface (\S+) link mtu (\d{1,6})", text)
    if found:
        for each in names(found[1]):
            switch.ports.setdefault(each, Port(each)).mtu = int(found[2])
        return True
    found = re.fullmatch(r"interface (\S+) bridge domain \S+ (?:access|untagged) (\d{1,5})", text)
    if found:
        for each in names(found[1]):
            switch.ports.setdefault(each, Port(each)).vlan = int(found[2])
        return True
    found = re.fullmatch(r"bridge domain (\S+) untagged (\d{1,5})", text)
    if found:
        profiles.untagged[found[1]] = int(found[2])
        return True
    found = re.fullmatch(r"interface (\S+) bridge domain (\S+)", text)
    if found:
        profiles.domains.update(dict.fromkeys(names(found[1]), found[2]))
        return True
    found = re.fullmatch(r"interface (\S+) qos (pfc|mapping|congestion-control) profile (\S+)", text)
    if found:
        profiles.of_port.update({(each, found[2]): found[3] for each in names(found[1])})
        return True
    return _of_profile(profiles, text)


def _of_profile(profiles: _Profiles, text: str) -> bool:
    found = re.fullmatch(r"qos pfc (\S+) switch-priority ([\d,-]+)", text)
    values = numbers(found[2]) if found else None
    if found and values is not None:
        profiles.pauses.setdefault(found[1], set()).update(values)
        return True
    if re.fullmatch(r"qos pfc \S+ ([tr]x enable|xo(n|ff)-threshold \S+|port-buffer \S+|cable-length \S+)", text):
        return True
    found = re.fullmatch(r"qos mapping (\S+) trust (l2|l3|port|both)", text)
    if found:
        profiles.trusts[found[1]] = found[2]
        return True
    found = re.fullmatch(r"qos mapping (\S+) dscp ([\d,-]+) switch-priority ([0-7])", text)
    values = numbers(found[2]) if found else None
    if found and values is not None:
        profiles.maps.setdefault(found[1], {}).update(dict.fromkeys(values, int(found[3])))
        return True
    found = re.fullmatch(
        r"qos congestion-control (\S+) traffic-class ([\d,-]+) (ecn|min-threshold|max-threshold|red|probability) (\w+)",
        text,
    )
    values = numbers(found[2]) if found else None
    if found and values is not None:
        for each in values:
            profiles.marks.setdefault(found[1], {}).setdefault(each, {})[found[3]] = found[4]
        return True
    same = re.fullmatch(r"qos egress-queue-mapping \S+ switch-priority ([0-7]) traffic-class ([0-7])", text)
    return bool(same and same[1] == same[2])


def _profiles(switch: Switch, profiles: _Profiles, port: Port) -> None:
    def of(kind: str) -> str:
        return profiles.of_port.get((port.name, kind), _DEFAULT)

    for kind, known in (("pfc", profiles.pauses), ("mapping", profiles.maps), ("congestion-control", profiles.marks)):
        if of(kind) != _DEFAULT and of(kind) not in known:
            switch.unread.append(Unread(f"interface {port.name}", f"{kind} profile {of(kind)} is not there", port.name))
    if port.vlan is None:
        port.vlan = profiles.untagged.get(profiles.domains.get(port.name, ""))
    port.pfc = set(profiles.pauses.get(of("pfc"), set()))
    if profiles.trusts.get(of("mapping"), "l2") in ("l3", "both"):
        port.dscp = dict(profiles.maps.get(of("mapping"), {}))
    for queue, said in profiles.marks.get(of("congestion-control"), {}).items():
        low, high = said.get("min-threshold", ""), said.get("max-threshold", "")
        if said.get("ecn") == "disable":
            continue
        least, most = whole(low), whole(high)
        if least is not None and most is not None:
            port.ecn[queue] = (least, most)
        else:
            place = f"congestion-control {of('congestion-control')} traffic-class {queue}"
            switch.unread.append(Unread(place, f"thresholds {low or 'none'} and {high or 'none'}", port.name))
