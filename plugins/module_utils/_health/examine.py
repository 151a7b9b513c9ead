# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""One examination of a node: a reading, and as many more as its findings need to be confirmed.

A sound node is read once. A tool that hangs costs its time limit once in the whole examination.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._hl_smi.command import HlSmiHung
from .checks import QUICK
from .collect import Sources, collect
from .engine import CONFIRM, Report, Tracker
from .readings import NodeReading, ToolResult

Run = Callable[[list[str]], "tuple[int, str, str]"]


@dataclass(frozen=True)
class Examination:
    """What an examination ended with: the report, and the last reading that has cards, else the last."""

    report: Report
    reading: NodeReading
    readings: int


class Patience:
    """Calls tools, and asks none again that gave no answer once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._hung: dict[str, str] = {}

    def __call__(self, command: list[str]) -> tuple[int, str, str]:
        tool = command[0]
        if tool in self._hung:
            raise HlSmiHung(self._hung[tool])
        try:
            return self._run(command)
        except HlSmiHung as hung:
            self._hung[tool] = str(hung)
            raise


def examine(
    sources: Sources,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    depth: str = QUICK,
    tools: tuple[ToolResult, ...] = (),
    expected_cards: int | None = None,
    interval_s: float = 1.0,
) -> Examination:
    """Read the node until every finding is confirmed or gone; ``tools`` are results of longer tests."""
    tracker = Tracker(expected_cards)
    number, best = 1, collect(sources, clock(), depth, tools)
    report = tracker.step(best)
    while report.suspects and number < CONFIRM:
        sleep(interval_s)
        number, reading = number + 1, collect(sources, clock(), depth, tools)
        report = tracker.step(reading)
        if reading.cards:
            best = reading
    return Examination(report, best, number)
