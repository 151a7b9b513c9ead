"""A lasting change of the level of a noisy series.

A cumulative sum (CUSUM: E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954) on the logarithm, so that
changes are ratios. Level and scatter of the reference are its median and its median absolute deviation (F. R. Hampel,
"The influence curve and its role in robust estimation", JASA 69, 1974), and every deviation is limited before it is
added, so that a few outliers of any size are no change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

NORMAL = 1.4826
"""Median absolute deviation of a normal distribution times this is its standard deviation."""
REFERENCE = 24
"""Values before anything is judged."""
LONGEST = 64
"""Values of the reference; it stays as it is then, so that a slow drift is seen."""
THRESHOLD = 24.0
LIMIT = 3.0
"""Deviations are limited to this; a change takes at least THRESHOLD / (LIMIT - 1) values to be seen."""
FEWEST = 5
"""Values after a change."""


def scatter(values: Iterable[float], center: float) -> float:
    """The robust standard deviation about a center."""
    return NORMAL * median(abs(value - center) for value in values)


@dataclass(frozen=True)
class Shift:
    """A level that has risen."""

    before: float
    after: float
    since: int
    """Step of the first value of the new level."""

    @property
    def ratio(self) -> float:
        """The new level in units of the old one."""
        return self.after / self.before


class LevelShift:
    """Watches a series of positive values for a lasting rise; falls are followed silently.

    >>> watch = LevelShift(effect=0.1)
    >>> found = [watch.update(step, 1.0 if step < 50 else 1.5) for step in range(100)]
    >>> [shift for shift in found if shift]
    [Shift(before=1.0, after=1.5, since=50)]
    """

    def __init__(self, effect: float) -> None:
        """Rises by less than the share `effect` are none."""
        self._effect = math.log1p(effect)
        self._reference: list[float] = []
        self._known: tuple[float, float] | None = None
        self._up, self._down = _Sum(), _Sum()

    def update(self, step: int, value: float) -> Shift | None:
        """The next value; a Shift if with it a rise is certain."""
        x = math.log(value)
        if len(self._reference) < REFERENCE:
            self._reference.append(x)
            return None
        if self._known is None:
            center = median(self._reference)
            self._known = center, max(scatter(self._reference, center), self._effect / 2)
        center, unit = self._known
        deviation = max(-LIMIT, min(LIMIT, (x - center) / unit))
        up, down = self._up.add(deviation, step, x), self._down.add(-deviation, step, x)
        if down:
            self._restart(self._down.values)
        elif up:
            after, since = median(self._up.values), self._up.since
            if after - center < self._effect:
                self._up = _Sum()  # too little; the reference stays, so that more of it is seen
                return None
            self._restart(self._up.values)
            return Shift(math.exp(center), math.exp(after), since)
        elif self._up.height < 2 and self._down.height < 2 and len(self._reference) < LONGEST:
            self._reference.append(x)
            self._known = None
        return None

    def _restart(self, values: list[float]) -> None:
        self._reference, self._known = list(values), None
        self._up, self._down = _Sum(), _Sum()


class _Sum:
    """One side of the cumulative sum, with the values since it was zero."""

    def __init__(self) -> None:
        self.height = 0.0
        self.since = 0
        self.values: list[float] = []

    def add(self, deviation: float, step: int, value: float) -> bool:
        """Is it too high?"""
        self.height = max(0.0, self.height + deviation - 1)
        if not self.height:
            self.values.clear()
            return False
        if not self.values:
            self.since = step
        self.values.append(value)
        return self.height >= THRESHOLD and len(self.values) >= FEWEST
