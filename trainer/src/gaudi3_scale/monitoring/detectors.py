"""Detectors of the other kinds: waits for data, compilations, growing memory, stragglers.

All are medians of windows, which a few outliers do not move, with one report for each change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from gaudi3_scale.monitoring.level import NORMAL


@dataclass(frozen=True)
class DetectedChange:
    """What a detector found."""

    before: float
    after: float
    since: int
    rank: int | None = None


class DataWait:
    """The median share of the last steps that went into waiting for data.

    >>> watch = DataWait(share=0.1)
    >>> found = [watch.update(step, 0.01 if step < 50 else 0.4) for step in range(100)]
    >>> [finding for finding in found if finding]
    [DetectedChange(before=0.01, after=0.4, since=50, rank=None)]
    """

    WINDOW = 25
    HISTORY = 64

    def __init__(self, share: float) -> None:
        """Report from this share on; once, until it has been below half of it."""
        self._share = share
        self._armed = True
        self._seen: deque[tuple[int, float]] = deque(maxlen=self.HISTORY)

    def update(self, step: int, share: float) -> DetectedChange | None:
        """The share of the next reading, 0 to 1."""
        self._seen.append((step, share))
        if len(self._seen) < self.WINDOW:
            return None
        seen = list(self._seen)
        now = median(value for _, value in seen[-self.WINDOW :])
        if now < self._share / 2:
            self._armed = True
        if now < self._share or not self._armed:
            return None
        self._armed = False
        first = len(seen)  # back to the last stretch in which most were low: one alone is a hiccup
        while first and sum(value < self._share for _, value in seen[max(0, first - 3) : first]) < 2:
            first -= 1
        above = [place for place, (_, value) in enumerate(seen) if value >= self._share]
        first = next((place for place in above if place >= first - 1), above[-1])
        high = [value for _, value in seen[first:]]
        return DetectedChange(median([value for _, value in seen[:first]] or [now]), median(high), seen[first][0])


class Compilations:
    """Readings in which something was compiled, after the warm-up.

    >>> watch = Compilations()
    >>> found = [watch.update(step, compiled) for step, compiled in enumerate([3, 3, 3, 4, 4, 5, 6, 6])]
    >>> [finding for finding in found if finding]
    [DetectedChange(before=3, after=6, since=3, rank=None)]
    """

    EVENTS = 3
    WINDOW = 64

    def __init__(self) -> None:
        self._last: int | None = None
        self._first = self._next = 0
        self._readings = 0
        self._events: deque[tuple[int, int]] = deque()

    def update(self, step: int, count: int, judge: bool = True) -> DetectedChange | None:
        """Take the number of compilations since the start; those outside of judged steps are expected."""
        before, self._last = self._last, count
        if before is None or not judge:
            if not self._events:
                self._first = count
            return None
        self._readings += 1
        while self._events and self._events[0][0] <= self._readings - self.WINDOW:
            self._events.popleft()
        if count <= before:
            return None
        self._events.append((self._readings, step))
        if len(self._events) < self.EVENTS or count < self._next:
            return None
        finding = DetectedChange(self._first, count, self._events[0][1])
        self._events.clear()
        # Said again when there are four times as many more: once a day rather than once a minute.
        self._next, self._first = count + 4 * (count - self._first), count
        return finding


class MemoryCreep:
    """Growth in each of four successive blocks of readings, on several scales of time.

    The medians of the blocks are compared, as in a test for trend (D. R. Cox and A. Stuart, "Some quick sign tests for
    trend in location and dispersion", Biometrika 42, 1955): one step up, and noise, are no trend.

    >>> watch = MemoryCreep(growth=0.05)
    >>> found = [watch.update(step, [1000.0, 1000.0 + 2 * step]) for step in range(64)]
    >>> [finding for finding in found if finding]
    [DetectedChange(before=1015.0, after=1111.0, since=0, rank=1)]
    """

    BLOCKS, BLOCK = 4, 16
    STRIDES = (1, 2, 4, 8, 16)
    EVEN = 8
    """A block has at least one part in this many of the growth."""

    def __init__(self, growth: float) -> None:
        """Report growth by this share or more, and again when it has doubled."""
        self._growth = growth
        self._count = 0
        self._base: dict[int, float] = {}
        self._least: dict[int, float] = {}
        self._scales = {
            stride: deque[tuple[int, np.ndarray]](maxlen=self.BLOCKS * self.BLOCK) for stride in self.STRIDES
        }

    def update(self, step: int, memory: Sequence[float]) -> DetectedChange | None:
        """Bytes of each rank."""
        values = np.asarray(memory, dtype=float)
        self._count += 1
        for stride, seen in self._scales.items():
            if self._count % stride:
                continue
            seen.append((step, values))
            # Whole blocks, as the same growth would be looked at in every position of the blocks otherwise.
            if len(seen) == seen.maxlen and self._count % (stride * (self.BLOCK // 4)) == 0:
                found = self._look(seen)
                if found is not None:
                    for each in self._scales.values():
                        each.clear()
                    return found
        return None

    def _look(self, seen: deque[tuple[int, np.ndarray]]) -> DetectedChange | None:
        table = np.stack([values for _, values in seen]).reshape(self.BLOCKS, self.BLOCK, -1)
        blocks = np.median(table, axis=1)
        rises, growth = np.diff(blocks, axis=0), blocks[-1] - blocks[0]
        creeps = (rises > growth / self.EVEN).all(axis=0) & (growth >= self._growth * blocks[0]) & (growth > 0)
        for rank in np.flatnonzero(creeps)[np.argsort(-growth[creeps], kind="stable")]:
            before, after = float(blocks[0, rank]), float(blocks[-1, rank])
            if after >= self._least.get(int(rank), 0.0):
                self._least[int(rank)] = after + after - self._base.setdefault(int(rank), before)
                return DetectedChange(before, after, seen[0][0], int(rank))
        return None


class Stragglers:
    """Ranks whose own work takes longer than that of the others in most of the last readings.

    A rank is held against median and median absolute deviation of the others.

    >>> watch = Stragglers(effect=0.2)
    >>> found = [watch.update(step, [1.0, 1.01, 0.99, 1.5 if step > 9 else 1.0]) for step in range(20)]
    >>> [finding for finding in found if finding]
    [DetectedChange(before=1.0, after=1.5, since=10, rank=3)]
    """

    WINDOW, MOST, FEW = 8, 6, 3
    DEVIATIONS = 4.0
    FLOOR = 0.02
    """Scatter that is taken for granted, as a share of the median."""

    def __init__(self, effect: float) -> None:
        """Report a rank that is slower than the others by this share or more; once, until it no longer is."""
        self._effect = effect
        self._seen: deque[tuple[int, np.ndarray, np.ndarray]] = deque(maxlen=self.WINDOW)
        self._reported: set[int] = set()
        self._rest = np.empty((0, 0), dtype=int)

    @property
    def suspects(self) -> bool:
        """Is a rank slower than the others, be it not for long enough?"""
        return bool(self._seen) and bool((self._slow().sum(axis=0) >= self.FEW).any())

    def update(self, step: int, own: Sequence[float]) -> DetectedChange | None:
        """Seconds of each rank."""
        if len(own) < 2:
            return None
        values = np.asarray(own, dtype=float)
        if self._seen and len(self._seen[-1][1]) != len(values):
            self._seen.clear()
        others, spread = self._others(values)
        slow = (values >= (1 + self._effect) * others) & (values - others >= self.DEVIATIONS * spread)
        self._seen.append((step, values, slow))
        counts = self._slow().sum(axis=0)
        self._reported = {rank for rank in self._reported if rank < len(counts) and counts[rank] >= self.FEW}
        for rank in np.flatnonzero(counts >= self.MOST):
            if int(rank) in self._reported:
                continue
            self._reported.add(int(rank))
            held = [(seen, times) for seen, times, found in self._seen if found[rank]]
            theirs = [median(np.delete(times, rank)) for _, times in held]
            mine = median(float(times[rank]) for _, times in held)
            return DetectedChange(float(median(theirs)), mine, held[0][0], int(rank))
        return None

    def _slow(self) -> np.ndarray:
        return np.stack([slow for _, _, slow in self._seen])

    def _others(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Median and scatter of the others, for each rank; from 16 ranks on, of all."""
        count = len(values)
        if count < 16:
            if len(self._rest) != count:
                self._rest = np.array([[other for other in range(count) if other != rank] for rank in range(count)])
            rest = values[self._rest]
            center = np.median(rest, axis=1)
            spread = np.median(np.abs(rest - center[:, None]), axis=1)
        else:
            center = np.full(count, np.median(values))
            spread = np.full(count, np.median(np.abs(values - center[0])))
        return center, np.maximum(NORMAL * spread, self.FLOOR * center)
