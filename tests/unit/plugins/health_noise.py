"""What a sound node's tools print on a bad day: noisy sensors, torn counters, slow calls, cells that are no number.

The texts are captured from a simulated node once. Each reading is spoilt by a seed, and counts what was spoilt.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable

from health_machine import TOOLS, Node

from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources, collect
from ansible_collections.gaudi3.scale.plugins.module_utils._health.readings import NodeReading
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi, HlSmiHung
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import QUERY_FIELDS

Answer = tuple[int, str, str]

#: Shares of cards, ports or calls that are spoilt in one reading. Torn counters: 10 to 15 % were seen in the field.
IMPOSSIBLE, GARBAGE, WRONG, LINK, TORN, SLOW = 0.02, 0.01, 0.01, 0.002, 0.12, 0.02
HUNG_TOOLS = ("hl-smi", "dmesg", "modinfo", "manage_network_ifs.sh")
_IMPOSSIBLE = {
    "temperature.aip": ("505712272", "-40", "300"),
    "power.draw": ("1900", "-1"),
    "memory.total": ("672",),
    "utilization.aip": ("250",),
    "pcie.link.width.current": ("x0",),
    "ecc.errors.uncorrected.volatile.total": (str(1 << 32), str(5 << 32)),
}
_WRONG = {"temperature.aip": "0", "pcie.link.width.current": "x8", "stats.violation.power": "1"}
_COUNTERS = ("pcs_link_restores", "pcs_local_faults", "cw_uncorrect_accum")


class Recorded:
    """The answers of a node's tools, by command."""

    def __init__(self, node: Node) -> None:
        self.answers: dict[str, Answer] = {}
        self.root = str(node.machine.root)
        node.calls.clear()

        def run(command: list[str]) -> Answer:
            if command[0] not in TOOLS:
                raise FileNotFoundError(f"No such file: {command[0]}")
            answer: Answer = tuple(node.machine.run(*command))
            self.answers[" ".join(command)] = answer
            return answer

        self._read(run, 0.0)

    def _read(self, run: Callable[[list[str]], Answer], at: float) -> NodeReading:

        script = "manage_network_ifs.sh"
        return collect(
            Sources(run, HlSmi("hl-smi", run), os.uname().release, self.root, ports_script=script), at, "standard"
        )

    def read(self, at: float, spoil: Callable[[str, Answer], Answer] | None = None) -> NodeReading:
        """One reading of the recorded answers, each passed through ``spoil``."""

        def run(command: list[str]) -> Answer:
            line = " ".join(command)
            if line not in self.answers:
                raise FileNotFoundError(f"No such file: {command[0]}")
            answer = self.answers[line]
            return answer if spoil is None else spoil(line, answer)

        return self._read(run, at)


class Noise:
    """Spoils the answers of one reading; ``injected`` counts the reads that were spoilt so that they cannot be used."""

    def __init__(self, draw: random.Random, hung: str | None) -> None:
        self._draw = draw
        self._hung = hung
        self._hangs = False
        self.injected = 0

    def __call__(self, line: str, answer: Answer) -> Answer:
        tool = line.split()[0]
        if tool == self._hung:
            if not self._hangs:
                self._hangs = True
                self.injected += 1
            raise HlSmiHung(f"{tool} gave no answer in 30 seconds")
        if self._draw.random() < SLOW / 4:
            self.injected += 1
            raise HlSmiHung(f"{tool} gave no answer in 30 seconds")
        code, text, error = answer
        if " -Q " in line:
            text = "".join(self._row(row) + "\n" for row in text.splitlines())
        elif " -n link " in line:
            text = re.sub(r"\bUP\b", lambda match: "DOWN" if self._draw.random() < LINK else match.group(), text)
        elif " -n stats " in line:
            text = self._torn(text)
        return code, text, error

    def _row(self, row: str) -> str:
        cells = dict(zip(QUERY_FIELDS, row.split(", "), strict=True))
        cells["temperature.aip"] = str(int(cells["temperature.aip"]) + round(self._draw.gauss(0, 2)))
        cells["power.draw"] = str(max(0, int(cells["power.draw"]) + round(self._draw.gauss(0, 8))))
        if self._draw.random() < WRONG:
            field = self._draw.choice(list(_WRONG))
            cells[field] = _WRONG[field]
        if self._draw.random() < IMPOSSIBLE:
            field = self._draw.choice(list(_IMPOSSIBLE))
            cells[field] = self._draw.choice(_IMPOSSIBLE[field])
            self.injected += 1
        if self._draw.random() < GARBAGE:
            cells[self._draw.choice(("power.draw", "memory.used", "pcie.link.gen.current"))] = "??"
            self.injected += 1
        return ", ".join(cells.values())

    def _torn(self, text: str) -> str:
        blocks = re.split(r"(?=^port )", text, flags=re.M)
        for number, block in enumerate(blocks):
            if block and self._draw.random() < TORN:
                name = self._draw.choice(_COUNTERS)
                times = self._draw.randrange(1, 14)
                blocks[number] = re.sub(
                    rf"(\t{name}: )(\d+)", lambda match, n=times: f"{match[1]}{int(match[2]) + (n << 32)}", block
                )
                self.injected += 1
        return "".join(blocks)
