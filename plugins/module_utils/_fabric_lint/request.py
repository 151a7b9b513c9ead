# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""One look at a fabric: its switches, the hosts' neighbours, and what is wanted of both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from .._files import open_to_read
from .._printable import printable
from .._refusal import Refusal
from .cabling import KEYS, Cable, Miswired, compared, named, once, seen
from .model import Switch
from .rules import ASKED, Finding, Wanted, lint, read

#: No configuration of a switch is longer.
MOST_BYTES = 64 * 1024 * 1024


@dataclass
class Verdict:
    """What was found, and how much of each configuration was read."""

    findings: list[Finding] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    miswired: list[Miswired] = field(default_factory=list)
    switches: list[dict[str, Any]] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    """What nothing is wanted of."""

    def as_facts(self) -> dict[str, Any]:
        """The verdict as plain data. Foreign text is one printable line each."""
        return {
            "ok": not self.findings and not self.miswired,
            "findings": [{key: printable(value) for key, value in asdict(each).items()} for each in self.findings],
            "cables": [{key: printable(value) for key, value in asdict(each).items()} for each in self.cables],
            "miswired": [{key: printable(value) for key, value in asdict(each).items()} for each in self.miswired],
            "switches": self.switches,
            "not_judged": self.not_judged,
        }


def text_of(name: str, path: str) -> str:
    """The configuration in this file. Raises Refusal, which names the switch, where it cannot be read."""
    try:
        with os.fdopen(open_to_read(path), "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Refusal(
            f"switch {name}: {path} cannot be read ({error.strerror}): give the file with its configuration"
        ) from None
    if len(content) > MOST_BYTES:
        raise Refusal(f"switch {name}: {path} is longer than 64 MiB: give the configuration of one switch")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal(f"switch {name}: {path} is no text: give the configuration as the switch prints it") from None


def look(
    switches: Sequence[Mapping[str, Any]],
    neighbours: Mapping[str, object],
    cables: Sequence[Mapping[str, str]],
    goal: Wanted,
    host_mtus: Mapping[str, Mapping[str, int]],
) -> Verdict:
    """Judge cables and switches. Raises Refusal where an input cannot be read.

    A switch's ports are those that it is given with, and those that a host is plugged into. ``host_mtus`` has the
    frame size of each port of each host.
    """
    verdict = Verdict(not_judged=[rule for rule in ASKED if not getattr(goal, rule)])
    for host, answer in neighbours.items():
        verdict.cables += seen(host, answer)
    wanted_cables = [Cable(**{key: str(each[key]) for key in KEYS}) for each in cables]
    called = {*(str(each["name"]) for each in switches), *(cable.switch for cable in wanted_cables)}
    verdict.cables = named(verdict.cables, called)
    verdict.miswired = compared(wanted_cables, verdict.cables, list(neighbours))
    once(wanted_cables)
    names = [str(each["name"]) for each in switches]
    for name in names:
        if names.count(name) > 1:
            raise Refusal(f"switch {name} is given {names.count(name)} times: give each once")
    plugged = {*verdict.cables, *wanted_cables}
    for name in sorted({cable.switch for cable in plugged} - set(names)) if names else []:
        cure = f"give the configuration of {name}, which hosts are plugged into"
        verdict.findings.append(Finding(name, "", "no-switch", "no configuration", "its configuration", cure))
    for each in switches:
        switch = read(str(each["name"]), str(each["syntax"]), text_of(str(each["name"]), str(each["path"])))
        ports = _ports(switch, each.get("ports"), plugged)
        behind = {
            _announced(switch, cable): int(host_mtus[cable.host][cable.port])
            for cable in plugged
            if cable.switch == switch.name and cable.port in host_mtus.get(cable.host, {})
        }
        verdict.findings += lint(switch, ports, goal, behind)
        verdict.switches.append(
            {"name": switch.name, "ports": len(ports), "unread": len(switch.unread), "other_subjects": switch.others}
        )
    return verdict


def _announced(switch: Switch, cable: Cable) -> str:
    """The port's name in the configuration, of which the host may have heard another one."""
    return switch.aliases.get(cable.switch_port, cable.switch_port)


def _ports(switch: Switch, given: Optional[Sequence[str]], plugged: set[Cable]) -> list[str]:
    named = {each if each in switch.ports else switch.aliases.get(each, each) for each in given or []}
    ports = sorted(named | {_announced(switch, cable) for cable in plugged if cable.switch == switch.name})
    if not ports:
        raise Refusal(
            f"switch {switch.name}: no port of it is given and no host is plugged into it by that name: give "
            "its ports, or the neighbours of its hosts"
        )
    return ports
