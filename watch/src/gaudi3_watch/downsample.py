"""Rows over time in bounded memory, and what a chart of some pixels needs of them.

A bucket is the least, the greatest and the last of its values, so that a spike of one step stays visible however far
one zooms out. What is no finite number is a gap.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

MOST_ROWS = 2**17
"""Rows that are kept. When there are more, each two neighbours become one: the older they are, the coarser."""
NAN = math.nan


class Points(NamedTuple):
    """A line of a chart: at each time the last value, and the least and the greatest of its bucket."""

    x: list[float]
    last: list[float | None]
    low: list[float | None]
    high: list[float | None]

    @property
    def is_empty(self) -> bool:
        """Whether there is no value at all."""
        return all(value is None for value in self.last)


class _Column:
    def __init__(self) -> None:
        self.low, self.high, self.last = array("d"), array("d"), array("d")
        self.has_gaps = False

    def append(self, value: float) -> None:
        self.has_gaps = self.has_gaps or value != value
        for each in (self.low, self.high, self.last):
            each.append(value)

    def halve(self) -> None:
        for name, chosen in (("low", _least), ("high", _greatest), ("last", _latest)):
            old: array[float] = getattr(self, name)
            new = array("d", map(chosen, old[::2], old[1::2]))
            setattr(self, name, new + old[-1:] if len(old) % 2 else new)

    def bucket(self, first: int, end: int) -> tuple[float | None, float | None, float | None]:
        """Last, least and greatest of the rows from ``first`` to before ``end``."""
        low, high, last = self.low[first:end], self.high[first:end], self.last[first:end]
        if self.has_gaps:
            low, high, last = (array("d", (each for each in part if each == each)) for part in (low, high, last))
        return (last[-1], min(low), max(high)) if last else (None, None, None)


class Columns:
    """Rows of several values, each with its time; times never go back."""

    def __init__(self, names: Iterable[str], most: int = MOST_ROWS) -> None:
        self._most = most
        self._times = array("d")
        self._columns = {name: _Column() for name in names}
        self.clock_steps = 0
        """How often a time was before the one of the row above, so that the clock must have been set back."""

    def __len__(self) -> int:
        return len(self._times)

    @property
    def first(self) -> float | None:
        """Time of the first row."""
        return self._times[0] if self._times else None

    @property
    def newest(self) -> float | None:
        """Time of the last row."""
        return self._times[-1] if self._times else None

    def add(self, time: float, values: Mapping[str, float | None]) -> None:
        """One more row. One whose time is before the last row's stands at that row's time."""
        if self._times and time < self._times[-1]:
            self.clock_steps += 1
            time = self._times[-1]
        self._times.append(time)
        for name, column in self._columns.items():
            value = values.get(name)
            column.append(value if value is not None and math.isfinite(value) else NAN)
        if len(self._times) > self._most:
            later = self._times[1::2]
            self._times = later + self._times[-1:] if len(self._times) % 2 else later
            for column in self._columns.values():
                column.halve()

    def latest(self, name: str) -> float | None:
        """The newest value of a column that is one."""
        values = self._columns[name].last
        return next((value for value in reversed(values) if value == value), None)

    def points(self, name: str, begin: float, end: float, width: int) -> Points:
        """A column between two times, and the rows next to them, in at most ``width`` buckets of equal time."""
        first, past = bisect_left(self._times, begin), bisect_right(self._times, end)
        around = [max(0, first - 1), min(len(self._times), past + 1)]
        column = self._columns[name]
        if past - first <= width:
            edges = list(range(around[0], around[1] + 1))
        else:
            step = (end - begin) / width
            inner = [bisect_left(self._times, begin + step * number, first, past) for number in range(1, width)]
            edges = sorted({around[0], first, *inner, past, around[1]})
        spans = list(zip(edges, edges[1:]))
        found = [column.bucket(*span) for span in spans]
        last, low, high = ([each[part] for each in found] for part in range(3))
        return Points([self._times[after - 1] for _before, after in spans], last, low, high)


def _least(one: float, other: float) -> float:
    return other if one != one or other < one else one


def _greatest(one: float, other: float) -> float:
    return other if one != one or other > one else one


def _latest(one: float, other: float) -> float:
    return one if other != other else other
