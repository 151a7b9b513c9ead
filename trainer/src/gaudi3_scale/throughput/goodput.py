"""Goodput: the share of a job's whole wall time in which it learnt something that was not lost later.

Read from the ledger that the processes of a job have appended to (see `ledger.py`). A process that resumes from step k
turns into `restart_loss` what its predecessors spent after step k, besides their start-up, and the time in which no
process ran, unless the job had finished before. The parts sum to the total exactly, in nanoseconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.ledger import COMPUTE, MEASURED, OTHER, STARTUP

RESTART = "restart_loss"
PARTS = {
    COMPUTE: "steps whose result was kept",
    "data_wait": "waiting for the next batch",
    "checkpoint_stall": "training stood still for a checkpoint",
    "evaluation": "evaluation",
    STARTUP: "from the start of each process to its first step",
    RESTART: "steps done again, and time in which no process ran",
    OTHER: "everything else: logging, agreement, the end of the job",
}
FILE = "goodput.jsonl"
LATEST_TIME = 1e11
"""Seconds since 1970 of a time that can be true."""


@dataclass(frozen=True)
class Goodput:
    """The account of a job."""

    nanoseconds: dict[str, int]
    """Of each of `PARTS`."""
    runs: int
    """Processes that have worked on the job one after the other."""

    @property
    def total(self) -> int:
        """Nanoseconds since the first process was started."""
        return sum(self.nanoseconds.values())

    @property
    def ratio(self) -> float:
        """The share of `compute`."""
        return self.nanoseconds[COMPUTE] / self.total if self.total else 0.0

    def status(self) -> dict[str, Any]:
        """As in status.json: seconds, rounded to milliseconds."""
        return {
            "ratio": round(self.ratio, 6),
            "total_seconds": round(self.total / 1e9, 3),
            "seconds": {part: round(ns / 1e9, 3) for part, ns in self.nanoseconds.items()},
            "restarts": max(0, self.runs - 1),
        }


@dataclass
class _Span:
    """Part of a run: what was spent between two lines of the ledger."""

    first: int
    last: int
    spent: dict[str, int]
    line: dict[str, Any]
    """The later one of the two."""


class Account:
    """Adds up the lines of a ledger."""

    def __init__(self, lines: Iterable[dict[str, Any]] = ()) -> None:
        """All lines in the order of the file."""
        self._spans: list[_Span] = []
        self._totals = dict.fromkeys(PARTS, 0)
        self._runs = 0
        self._previous: dict[str, Any] | None = None
        for line in lines:
            self.add(line)

    def add(self, line: dict[str, Any]) -> None:
        """One more line."""
        previous, self._previous = self._previous, line
        if previous is not None and previous["run"] == line["run"]:
            first, before = previous["step"], previous["nanoseconds"]
        else:
            first, before = line["step"], dict.fromkeys(MEASURED, 0)
            self._runs += 1
            if previous is not None:
                nothing_ran = max(0, round((line["began"] - previous["time"]) * 1e9))
                self._pause(nothing_ran, previous)
                self._forget(line["step"])
        span = _Span(first, line["step"], {part: line["nanoseconds"][part] - before[part] for part in MEASURED}, line)
        self._spans.append(span)
        for part, spent in span.spent.items():
            self._count(part, spent, line)

    def goodput(self, now: dict[str, int] | None = None) -> Goodput:
        """The sum; `now` is what the process that wrote the last line has spent on each part by now."""
        totals = dict(self._totals)
        if now is not None and self._previous is not None:
            for part, spent in now.items():
                totals[part] += spent - self._previous["nanoseconds"][part]
        return Goodput(totals, self._runs)

    def _count(self, part: str, nanoseconds: int, line: dict[str, Any]) -> None:
        """Time of a part; `line` is of the process that spent it, or the last one before nothing ran."""
        self._totals[part] += nanoseconds

    def _pause(self, nanoseconds: int, line: dict[str, Any]) -> None:
        """Time in which no process ran, after the one that wrote this line."""
        self._count(OTHER if line["event"] == "finished" else RESTART, nanoseconds, line)

    def _forget(self, step: int) -> None:
        """What was spent after this step was in vain; of a span around it, in proportion to the steps."""
        for span in self._spans:
            if span.last <= step:
                continue
            steps = max(1, span.last - span.first)
            beyond = min(steps, span.last - step)
            for part in MEASURED:
                if part != STARTUP:
                    lost = span.spent[part] * beyond // steps
                    span.spent[part] -= lost
                    self._count(part, -lost, span.line)
                    self._count(RESTART, lost, span.line)
            span.first, span.last = min(span.first, step), step


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a ledger, without those that a kill left unfinished."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for part in text.splitlines():
        try:
            yield checked(json.loads(part))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


def checked(line: Any) -> dict[str, Any]:
    """A line of a ledger, its numbers as numbers; ValueError, KeyError or TypeError where it is none."""
    times = [finite(line["began"]), finite(line["time"])]
    if not all(abs(time) < LATEST_TIME for time in times):
        raise ValueError("a time is none")
    spent = {name: whole(line["nanoseconds"][name]) for name in MEASURED}
    if not (isinstance(line["step"], int) and isinstance(line["run"], str) and isinstance(line["event"], str)):
        raise TypeError("line")
    return {**line, "step": whole(line["step"]), "began": times[0], "time": times[1], "nanoseconds": spent}


def finite(value: Any) -> float:
    """A number of a file as one to reckon with; ValueError or TypeError where it is none."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def whole(value: Any) -> int:
    """A whole number of a file, of 64 bits; ValueError or TypeError where it is none."""
    number = finite(value)
    if abs(number) >= 2**63:
        raise ValueError("a number has more than 64 bits")
    return int(value)


def of_directory(directory: Path) -> Goodput:
    """The goodput of the job with this output directory; a ConfigError where there is no ledger."""
    account = Account(read(directory / FILE))
    found = account.goodput()
    if not found.runs:
        raise ConfigError(
            f"{directory} has no {FILE} with a readable line: give the output_dir of a job that has started training."
        )
    return found
