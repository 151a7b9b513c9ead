# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Arista EOS: the running configuration."""

from __future__ import annotations

import re

from .._refusal import Refusal
from .lines import Line, joined, tree
from .model import Port, Switch, Unread, about_subject, bytes_of, is_other, numbers

_MARK = re.compile(
    r"random-detect ecn minimum-threshold (\d+) (\w+) maximum-threshold (\d+) (\w+)"
    r"( max-mark-probability \d+)?( weight \d+)?"
)
_PAUSE = re.compile(r"priority-flow-control priority ([\d,-]+) no-drop")


def read(name: str, text: str) -> Switch:
    """The switch of this running configuration. Raises Refusal where no interface is in it."""
    top = joined(tree(text))
    switch = Switch(name, "eos")
    interfaces = [line for line in top if re.fullmatch(r"interface Ethernet\S+", line.text)]
    if not interfaces:
        raise Refusal("the configuration has no 'interface Ethernet...': give EOS' 'show running-config'")
    dscp: dict[int, int] = {}
    profiles = {line.text[len("qos profile ") :]: line for line in top if line.text.startswith("qos profile ")}
    for line in top:
        found = re.fullmatch(r"qos map dscp ([\d ,-]+) to traffic-class (\d{1,3})", line.text)
        values = numbers(found[1].replace(" ", ",")) if found else None
        if found and values is not None:
            dscp.update(dict.fromkeys(values, int(found[2])))
        elif line in interfaces or line.text in (f"qos profile {each}" for each in profiles):
            continue
        elif line.text.startswith(("interface ", "vlan ", "router ")):
            switch.others += sum(1 for _each in line.every())
        else:
            _left(switch, line, "")
    for line in interfaces:
        port = Port(line.text.split()[1])
        switch.ports[port.name] = port
        state = {"trust": False, "routed": False, "on": False}
        for each in line.below:
            _setting(switch, port, each, state, profiles)
        if not state["on"]:
            port.pfc = set()
        port.vlan = port.vlans.get(port.trunk)
        # A bridged port takes the tag's priority unless it is told to trust DSCP; a routed one trusts DSCP.
        if state["trust"] or state["routed"]:
            port.dscp = dict(dscp)
    return switch


def _setting(switch: Switch, port: Port, line: Line, state: dict[str, bool], profiles: dict[str, Line]) -> None:
    text = line.text
    pause = _PAUSE.fullmatch(text)
    if re.fullmatch(r"mtu \d{1,6}", text):
        port.mtu = int(text.split()[1])
    elif text in ("priority-flow-control on", "priority-flow-control mode on"):
        state["on"] = True
    elif text == "no priority-flow-control":
        state["on"] = False
    elif pause and numbers(pause[1]) is not None:
        port.pfc |= numbers(pause[1]) or set()
    elif text == "qos trust dscp":
        state["trust"] = True
    elif text == "no switchport":
        state["routed"] = True
    elif text.startswith("switchport mode "):
        port.trunk = text.split()[2] == "trunk"  # also as "trunk phone"
        switch.others += 1
    elif re.fullmatch(r"switchport (access|trunk native) vlan \d{1,5}", text):
        port.vlans["trunk" in text] = int(text.split()[-1])
    elif re.fullmatch(r"service-profile \S+", text) and text.split()[1] in profiles:
        for each in profiles[text.split()[1]].below:
            _setting(switch, port, each, state, profiles if not each.text.startswith("service-profile") else {})
    elif re.fullmatch(r"(uc-)?tx-queue \d{1,3}", text):
        for each in line.below:
            _mark(switch, port, int(text.split()[1]), each)
    else:
        _left(switch, line, port.name)


def _mark(switch: Switch, port: Port, queue: int, line: Line) -> None:
    found = _MARK.fullmatch(line.text)
    low = bytes_of(found[1], found[2]) if found else None
    high = bytes_of(found[3], found[4]) if found else None
    if low is not None and high is not None:
        port.ecn[queue] = (low, high)
    elif line.text != "random-detect ecn count":
        _left(switch, line, port.name)


def _left(switch: Switch, line: Line, port: str) -> None:
    # What "no" unsets is not set: "show running-config all" has a line for each.
    unset = ("no priority-flow-control", "no random-detect ", "no switchport ", "no mtu")
    known = ("switchport mode ", "switchport trunk allowed ", *unset)
    if is_other(line.text):
        switch.others += sum(1 for _each in line.every())
        return
    for each in line.every():
        if each.text.startswith(known) or not about_subject(each.text):
            switch.others += 1
        else:
            switch.unread.append(Unread(each.location, each.text, port))
