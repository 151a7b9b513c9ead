"""The verdicts of a report beside those of its twin, each difference by name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .inverse import Verdict
from .stand import MEMORY, Stand

SAME, REPORT_ALONE, TWIN_ALONE = "same", "report alone", "twin alone"


@dataclass(frozen=True)
class Row:
    """One verdict, and which of the two has it."""

    where: str
    verdict: Verdict

    def text(self) -> str:
        """One line for people."""
        each = self.verdict
        return f"{self.where:<13} {each.component:<16} {each.check:<32} {each.severity:<8} {each.action}"


def replay(twin: dict[str, Any], state: dict[str, Any]) -> list[Row]:
    """Every verdict of the report and of the twin, which boots in a folder of its own for it."""
    said = [Verdict(**each) for each in twin["verdicts"] or []]
    with tempfile.TemporaryDirectory(prefix="gaudi3-twin-", dir=MEMORY) as place:
        stand = Stand(Path(place), twin, state)
        with stand.up():
            return compare(said, stand.verdicts())


def compare(said: Iterable[Verdict], found: Iterable[Verdict]) -> list[Row]:
    """The rows, by component and check."""
    theirs, ours = {each.same: each for each in said}, {each.same: each for each in found}
    rows = [Row(SAME if key in ours else REPORT_ALONE, each) for key, each in theirs.items()]
    rows += [Row(TWIN_ALONE, each) for key, each in ours.items() if key not in theirs]
    return sorted(rows, key=lambda row: (row.verdict.component, row.verdict.same))


def differences(rows: Iterable[Row]) -> list[Row]:
    """The rows that only one of the two has."""
    return [row for row in rows if row.where != SAME]
