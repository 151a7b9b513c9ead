"""A simulated node, read by the health engine in this process: no root, no container."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from health_cases import Case

from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources, collect
from ansible_collections.gaudi3.scale.plugins.module_utils._health.readings import NodeReading, ToolResult
from ansible_collections.gaudi3.scale.plugins.module_utils._health.tools import qualify
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi, HlSmiHung

sys.path.append(str(Path(__file__).parents[3] / "simulator/tests/node"))

from simulated_machine import TOOLS, Machine, Machines, Tree, machines

ACQUIRE = "/run/gaudi3-simulator/acquire-status"
BOARD_GENERATIONS = {"HL-325L": "gaudi3", "HL-225": "gaudi2"}
BOARDS = tuple(BOARD_GENERATIONS)


class Node:
    """One simulated node and what is read of it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.hung = False
        self.calls: list[str] = []
        self.answers: dict[str, str] = {}
        self.results: tuple[ToolResult, ...] = ()

    def _run(self, command: list[str]) -> tuple[int, str, str]:
        self.calls.append(" ".join(command))
        if self.hung and command[0] == "hl-smi":
            raise HlSmiHung("hl-smi gave no answer in 30 seconds")
        if command[0] in self.answers:
            return (0, self.answers[command[0]], "")
        if command[0] not in TOOLS:
            raise FileNotFoundError(f"No such file: {command[0]}")
        return tuple(self.machine.run(*command))  # type: ignore[return-value]

    def qualify(self, *modes: str) -> None:
        """Run modes of hl_qual, and keep the results for the readings."""
        cards = [(int(cells[0]), cells[1]) for cells in self.machine.csv("index,bus_id")]
        generation = BOARD_GENERATIONS[self.machine.state()["board"]]
        self.results = tuple(qualify(self._run, "hl_qual", generation, cards, modes))

    def read(self, depth: str = "standard", huge_pages: int | None = None) -> NodeReading:
        """One reading, with what acquiring a card would end with."""
        sources = Sources(
            self._run,
            HlSmi("hl-smi", self._run),
            os.uname().release,
            str(self.machine.root),
            ports_script="manage_network_ifs.sh",
            huge_pages_wanted=huge_pages,
        )
        status = self.machine.path(ACQUIRE)
        tools = (ToolResult("acquire", not status.exists(), status.read_text() if status.exists() else ""),)
        return collect(sources, self.machine.now, depth, tools + self.results)

    def readings(self, count: int = 3, seconds: float = 10.0) -> list[NodeReading]:
        """Readings some seconds apart."""
        found = []
        for number in range(count):
            if number:
                self.machine.at(self.machine.now + seconds)
            found.append(self.read())
        return found


def put(node: Node, case: Case) -> None:
    """Put the fault of a case on the node, and let it show."""
    machine = node.machine
    if case.setup == "translated":
        machine.write("/etc/default/grub", "\n")
        machine.ok("update-grub")
        machine.reboot()
    machine.ok("node", "fault", case.fault, *case.options)
    node.hung = case.fault == "hl-smi-hang"
    if case.setup == "reload":
        for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
            machine.run("modprobe", "-r", name)
        machine.run("modprobe", "habanalabs")
    if case.setup == "hl_qual":
        node.qualify(case.check.partition(":")[2])
    if case.fault == "device-acquired":  # the node's own /proc has the process's name
        pid = next(fault["pid"] for fault in machine.state()["faults"])
        machine.write(f"/proc/{pid}/comm", "python3\n")


class Nodes:
    """Makes equal nodes of each board in a fraction of the time that the first one takes."""

    def __init__(self, made: Machines, folder: Path) -> None:
        self._made = made
        self._folder = folder
        self._trees: dict[str, Tree] = {}

    def loaded(self, board: str) -> Node:
        """A node of eight cards with driver, firmware and external ports up, and flow control on."""
        name = f"{board.lower()}-{len(self._made._every)}"
        if board not in self._trees:
            machine = self._made.bare(name, board=board)
            machine.install()
            machine.write("/etc/default/grub", 'GRUB_CMDLINE_LINUX="iommu=pt"\n')
            machine.ok("update-grub")
            machine.reboot()
            machine.ok("manage_network_ifs.sh", "--up")
            machine.ok("manage_network_ifs.sh", "--set-pfc")
            self._trees[board] = Tree(machine.root)
            return Node(machine)
        self._trees[board].make(self._made._folder / name)
        return Node(self._made._new(name))


@contextmanager
def nodes() -> Iterator[Nodes]:
    """Nodes for the tests of a module."""
    with pytest.MonkeyPatch.context() as patch, machines(patch) as made:
        yield Nodes(made, made._folder)
