# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The health engine: readings in, verdicts out. Pure: the caller reads, and says when.

A finding becomes a verdict when ``CONFIRM`` readings in a row show it, and goes when as many in a row do not. A reading
in which the component could not be read counts for neither. What could not be read is a check error of that reading
alone: it is gone with the next good one, and it never drains a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .actions import ERROR, INFO, NONE, strongest, worst
from .checks import findings
from .readings import NodeReading, ReadFault
from .sanity import sane
from .verdicts import CHECK_ERROR, Finding

#: Readings in a row that have to agree. With a share p of readings wrong in the same way, p**3 of the verdicts are.
CONFIRM = 3

SHADOW, ENFORCE = "shadow", "enforce"


@dataclass(frozen=True)
class Report:
    """What is known of a node after a reading.

    ``suspects`` are findings that are not confirmed yet, ``verdicts`` those that are, each with the time of its first
    reading in ``since``. ``errors`` are what the last reading could not read.
    """

    taken_at: float
    verdicts: tuple[Finding, ...] = ()
    suspects: tuple[Finding, ...] = ()
    errors: tuple[Finding, ...] = ()
    since: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether no verdict is there that is worse than a note."""
        return all(verdict.severity == INFO for verdict in self.verdicts)

    @property
    def drains(self) -> bool:
        """Whether a verdict asks for the node to be taken away from jobs."""
        return any(verdict.drains for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a module's result and for the record."""
        return {
            "healthy": self.healthy,
            "drains": self.drains,
            "severity": worst([verdict.severity for verdict in self.verdicts]),
            "action": strongest([verdict.action for verdict in self.verdicts]),
            "verdicts": [{**verdict.as_dict(), "since": self.since[verdict.key]} for verdict in self.verdicts],
            "suspects": [suspect.as_dict() for suspect in self.suspects],
            "errors": [error.as_dict() for error in self.errors],
        }


@dataclass
class _Case:
    """How often a finding was seen and not seen in a row."""

    finding: Finding
    first_at: float
    seen: int = 1
    missed: int = 0
    confirmed: bool = False


class Tracker:
    """Follows one node from reading to reading."""

    def __init__(
        self, expected_cards: int | None = None, without: Collection[str] = (), confirm: int = CONFIRM
    ) -> None:
        self._expected = expected_cards
        self._without = without
        self._confirm = confirm
        self._cases: dict[tuple[str, str], _Case] = {}
        self._before: NodeReading | None = None

    def step(self, taken: NodeReading) -> Report:
        """Take one reading into account."""
        reading = sane(taken, self._before)
        found = {finding.key: finding for finding in findings(reading, self._expected, self._without)}
        own = [finding for finding in found.values() if finding.kind == CHECK_ERROR]
        for key, finding in found.items():
            if finding.kind == CHECK_ERROR:
                continue
            case = self._cases.get(key)
            if case is None:
                case = self._cases[key] = _Case(finding, reading.taken_at, seen=0)
            case.finding, case.seen, case.missed = finding, case.seen + 1, 0
            case.confirmed = case.confirmed or case.seen >= self._confirm
        for key in [key for key in self._cases if key not in found]:
            if _is_unread(key[1], reading.faults):
                continue
            case = self._cases[key]
            case.missed, case.seen = case.missed + 1, 0
            if not case.confirmed or case.missed >= self._confirm:
                del self._cases[key]
        self._before = _last_good(reading, self._before)
        verdicts = tuple(case.finding for case in self._cases.values() if case.confirmed)
        return Report(
            reading.taken_at,
            verdicts,
            tuple(case.finding for case in self._cases.values() if not case.confirmed),
            tuple(_error(fault) for fault in reading.faults) + tuple(own),
            {verdict.key: self._cases[verdict.key].first_at for verdict in verdicts},
        )


def evaluate(
    readings: Sequence[NodeReading],
    expected_cards: int | None = None,
    without: Collection[str] = (),
    confirm: int = CONFIRM,
) -> Report:
    """The report after some readings of one node, the oldest first."""
    tracker = Tracker(expected_cards, without, confirm)
    report = Report(0.0)
    for reading in readings:
        report = tracker.step(reading)
    return report


def _error(fault: ReadFault) -> Finding:
    said = f"{fault.source} could not be read: {fault.reason}"
    return Finding("reading", fault.source, CHECK_ERROR, ERROR, NONE, said)


def _is_unread(component: str, faults: Iterable[ReadFault]) -> bool:
    """Whether a fault of the read may hide the component: one of its own, or of a whole tool."""
    return any(
        not fault.source.startswith("accel") or fault.source.split()[0] == component.split()[0] for fault in faults
    )


def _last_good(reading: NodeReading, before: NodeReading | None) -> NodeReading:
    """The reading with which counters are compared next: of one without cards, the one before."""
    return before if not reading.cards and before is not None else reading
