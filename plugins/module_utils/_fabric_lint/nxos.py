# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Cisco NX-OS: the running configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .._refusal import Refusal
from .lines import Line, joined, tree
from .model import Port, Switch, Unread, about_subject, bytes_of, is_other, numbers

_MARK = re.compile(
    r"random-detect minimum-threshold (\d+) (\w+) maximum-threshold (\d+) (\w+)"
    r"( drop-probability \d+)?( weight \d+)? ecn"
)


@dataclass
class _Policies:
    """Maps of classes and policies by their names."""

    classes: dict[str, set[int]] = field(default_factory=dict)
    qos: dict[str, dict[int, int]] = field(default_factory=dict)
    pauses: dict[str, set[int]] = field(default_factory=dict)
    marks: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)


def read(name: str, text: str) -> Switch:
    """The switch of this running configuration. Raises Refusal where no interface is in it."""
    top = joined(tree(text))
    switch = Switch(name, "nxos")
    if not any(re.fullmatch(r"interface Ethernet\S+", line.text) for line in top):
        raise Refusal("the configuration has no 'interface Ethernet...': give NX-OS' 'show running-config'")
    policies = _Policies()
    for line in top:
        _policy(switch, policies, line)
    everywhere: dict[str, str] = {}
    for line in top:
        if line.text == "system qos":
            for each in line.below:
                _attach(switch, everywhere, each, "")
    for line in top:
        if re.fullmatch(r"interface Ethernet\S+", line.text):
            port = Port(line.text.split()[1])
            switch.ports[port.name] = port
            _port(switch, policies, dict(everywhere), port, line)
    return switch


def _policy(switch: Switch, policies: _Policies, line: Line) -> None:
    words = line.text.split()
    if line.text.startswith("class-map type qos"):
        values: set[int] = set()
        for each in line.below:
            found = re.fullmatch(r"match dscp ([\d,-]+)", each.text)
            listed = numbers(found[1]) if found else None
            values |= listed or set()
            if listed is None:
                _left(switch, each, "")
        policies.classes[words[-1]] = values
    elif line.text.startswith("policy-map type qos"):
        mapped = policies.qos.setdefault(words[-1], {})
        for each in line.below:
            _group(switch, policies, mapped, each)
    elif line.text.startswith("policy-map type network-qos"):
        paused = policies.pauses.setdefault(words[-1], set())
        for each in (deep for direct in line.below for deep in direct.below):
            found = re.fullmatch(r"pause pfc-cos ([\d,-]+)", each.text)
            listed = numbers(found[1]) if found else None
            paused |= listed or set()
            # The frame size of a class is the port's where the port has none; the linter asks for the port's.
            if listed is None and not re.fullmatch(r"mtu \d{1,6}", each.text):
                _left(switch, each, "")
    elif line.text.startswith("policy-map type queuing"):
        marks = policies.marks.setdefault(words[-1], {})
        for each in line.below:
            queue = re.fullmatch(r"class type queuing c-out-8q-q(\d)", each.text)
            for deep in each.below:
                _mark(switch, marks, int(queue[1]) if queue else None, deep)
    elif line.text != "system qos" and not line.text.startswith("interface Ethernet"):
        if line.text.startswith(("interface ", "vlan ", "router ", "feature ", "version ")):
            switch.others += sum(1 for _each in line.every())
        else:
            _left(switch, line, "")


def _group(switch: Switch, policies: _Policies, mapped: dict[int, int], line: Line) -> None:
    named = line.text.split()[-1]
    for each in line.below:
        found = re.fullmatch(r"set qos-group (\d{1,3})", each.text)
        if found and named in policies.classes:
            for dscp in policies.classes[named]:
                mapped.setdefault(dscp, int(found[1]))  # the first class that matches counts
        elif not (found and named == "class-default"):
            switch.unread.append(Unread(each.location, each.text))


def _mark(switch: Switch, marks: dict[int, tuple[int, int]], queue: int | None, line: Line) -> None:
    found = _MARK.fullmatch(line.text)
    low = bytes_of(found[1], found[2]) if found else None
    high = bytes_of(found[3], found[4]) if found else None
    if queue is not None and low is not None and high is not None:
        marks[queue] = (low, high)
    elif line.text.startswith(("bandwidth ", "priority level ")):
        switch.others += 1
    else:
        _left(switch, line, "")


def _attach(switch: Switch, attached: dict[str, str], line: Line, port: str) -> None:
    found = re.fullmatch(r"service-policy type (qos input|network-qos|queuing output) (\S+)", line.text)
    if found:
        attached[found[1].split()[0]] = found[2]
    else:
        _left(switch, line, port)


def _port(switch: Switch, policies: _Policies, attached: dict[str, str], port: Port, line: Line) -> None:
    paused = False
    for each in line.below:
        if re.fullmatch(r"mtu \d{1,6}", each.text):
            port.mtu = int(each.text.split()[1])
        elif each.text == "priority-flow-control mode on":
            paused = True
        elif each.text in ("priority-flow-control mode auto", "priority-flow-control mode off"):
            paused = False
        elif each.text.startswith("switchport mode "):
            port.trunk = each.text.split()[2] == "trunk"
            switch.others += 1
        elif re.fullmatch(r"switchport (access|trunk native) vlan \d{1,5}", each.text):
            port.vlans["trunk" in each.text] = int(each.text.split()[-1])
        elif each.text.startswith("service-policy "):
            _attach(switch, attached, each, port.name)
        else:
            _left(switch, each, port.name)
    for kind, known in (("qos", policies.qos), ("network-qos", policies.pauses), ("queuing", policies.marks)):
        if kind in attached and attached[kind] not in known:
            switch.unread.append(
                Unread(line.location, f"policy {attached[kind]} of type {kind} is not there", port.name)
            )
    port.vlan = port.vlans.get(port.trunk)
    port.pfc = set(policies.pauses.get(attached.get("network-qos", ""), set())) if paused else set()
    port.dscp = dict(policies.qos.get(attached.get("qos", ""), {}))
    port.ecn = dict(policies.marks.get(attached.get("queuing", ""), {}))


def _left(switch: Switch, line: Line, port: str) -> None:
    if is_other(line.text):
        switch.others += sum(1 for _each in line.every())
        return
    for each in line.every():
        if each.text.startswith(("switchport mode ", "switchport trunk allowed ")) or not about_subject(each.text):
            switch.others += 1
        else:
            switch.unread.append(Unread(each.location, each.text, port))
