# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A node against its fleet: by median and median absolute deviation, and only where enough nodes were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from .actions import ERROR, ISOLATE
from .verdicts import NODE_FAULT, Finding

#: Fewer nodes say nothing about what is usual.
MINIMUM_SAMPLE = 8
#: Deviations from the median, in MADs as standard deviations.
LIMIT = 6.0
#: A figure within this share of the median is never an outlier: a fleet of equal nodes has a MAD near 0.
TOLERANCE = 0.05
_TO_SIGMA = 1.4826
LOW, HIGH = "low", "high"


@dataclass(frozen=True)
class Outlier:
    """One member of the fleet that stands apart."""

    member: str
    value: float
    median: float
    mad: float
    sample: int

    @property
    def evidence(self) -> str:
        """The numbers in words."""
        return f"{self.value:g} where the median of {self.sample} is {self.median:g} (MAD {self.mad:g})"


def outliers(
    values: Mapping[str, float],
    bad: str = LOW,
    limit: float = LIMIT,
    tolerance: float = TOLERANCE,
    minimum: int = MINIMUM_SAMPLE,
) -> list[Outlier]:
    """Members whose value is too low (or too high, with ``bad`` HIGH) for this fleet, the worst first."""
    if len(values) < minimum:
        return []
    middle = median(values.values())
    mad = median(abs(value - middle) for value in values.values())
    allowed = max(limit * _TO_SIGMA * mad, tolerance * abs(middle))
    sign = 1 if bad == HIGH else -1
    found = [
        Outlier(member, value, middle, mad, len(values))
        for member, value in values.items()
        if sign * (value - middle) > allowed
    ]
    return sorted(found, key=lambda each: (-sign * each.value, each.member))


def verdicts(measure: str, unit: str, values: Mapping[str, float], bad: str = LOW) -> dict[str, Finding]:
    """Findings by node for one measure, such as the bandwidth of a collective."""
    return {
        each.member: Finding(
            f"fleet:{measure}", "node", NODE_FAULT, ERROR, ISOLATE, f"{measure} in {unit} is {each.evidence}"
        )
        for each in outliers(values, bad)
    }


def apart(figures: Mapping[str, Mapping[str, float]]) -> dict[str, list[Finding]]:
    """Findings by node, of the nodes of which a figure stands apart; ``figures`` are those of each node, by measure."""
    found: dict[str, list[Finding]] = {}
    for measure in sorted({name for mine in figures.values() for name in mine or ()}):
        values = {node: float(mine[measure]) for node, mine in figures.items() if mine and measure in mine}
        for node, finding in verdicts(measure, "GB/s", values).items():
            found.setdefault(node, []).append(finding)
    return found
