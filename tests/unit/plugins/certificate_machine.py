"""Evidence of simulated machines, gathered by the product's own code, with hl_qual and the training step passed."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from health_machine import Node, Nodes

from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.cards import Reader
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.redfish import Unread
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.evidence import Evidence, read, with_controller
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.sources import MODES
from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import certificate as body
from gaudi3_simulator.node import bmc, node

TAKEN = 1_790_000_000.0
Facts = dict[str, Any]


class _Controller:
    """The stand-in's resources, without a network."""

    def __init__(self, shown: Mapping[str, Any]) -> None:
        self._shown = shown

    def first(self) -> Any:
        return self._shown["/redfish/v1"]

    def get(self, path: str) -> Any:
        if path not in self._shown:
            raise Unread("it has no such resource (HTTP 404)", is_absent=True)
        return self._shown[path]


def gathered(machine: Node, folder: Path) -> Facts:
    """What the module returns on this node, and below ``bmc`` what its controller says."""
    sources = Sources(machine._run, HlSmi("hl-smi", machine._run), os.uname().release, str(machine.machine.root))
    reading = body.look(sources, machine.machine.now)
    progress = body.Progress(str(folder), body.identity(reading), TAKEN, 7)
    facts = body.gather(sources, "gaudi-1", TAKEN, reading, {}, progress)
    facts["disks"] = []  # this machine's own
    facts["qual"] = [{"name": mode, "passed": True, "at": TAKEN} for mode in MODES]
    facts["steps"] = [{"name": "step", "passed": True, "card": card["index"], "at": TAKEN} for card in facts["cards"]]
    shown = bmc.resources(node.Node.load())
    facts["bmc"] = Reader(_Controller(shown), lambda: TAKEN).machine().as_facts()  # type: ignore[arg-type]
    return facts


def evidence_of(facts: Facts) -> Evidence:
    """The evidence, with the controller of a board that has a known one."""
    found = read(facts)
    return with_controller(found, facts["bmc"]) if found.generation == "gaudi3" else found


@dataclass(frozen=True)
class History:
    """What happened to a machine: faults of the simulator, or a change of what its sources say; the grade, and a word.

    ``said`` is part of the sentence that has to be there, by rule, note or reason.
    """

    name: str
    grade: str
    said: str
    faults: tuple[tuple[str, ...], ...] = ()
    change: Callable[[Facts], None] = lambda facts: None
    is_of_gaudi3: bool = False
    """Whether a Gaudi 2 cannot show it, as its controller is not read."""


class Bench:
    """Sound evidence of each board, gathered once, and nodes for the faults."""

    def __init__(self, made: Nodes, folder: Path) -> None:
        self._made, self._folder = made, folder
        self._sound: dict[str, Facts] = {}

    def sound(self, board: str) -> Facts:
        """Facts of a machine without a history; each call gives its own."""
        if board not in self._sound:
            self._sound[board] = gathered(self._made.loaded(board), self._folder)
        return copy.deepcopy(self._sound[board])

    def facts(self, history: History, board: str) -> Facts:
        """Facts of a machine with this history."""
        if not history.faults:
            found = self.sound(board)
        else:
            machine = self._made.loaded(board)
            for fault in history.faults:
                machine.machine.ok("node", "fault", *fault)
            machine.hung = any(fault[0] == "hl-smi-hang" for fault in history.faults)
            found = gathered(machine, self._folder)
        history.change(found)
        return found
