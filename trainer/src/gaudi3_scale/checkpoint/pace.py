"""When the next checkpoint is due: after a number of steps or of seconds, at the same step on all ranks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

FIRST_LOOK = 3
"""Steps after the start until the speed is measured; the first step compiles, and says nothing."""


class Pace:
    """Clocks of ranks differ, so ranks exchange theirs at steps on which they agreed before, and not at every step."""

    def __init__(
        self,
        every: int,
        seconds: float | None = None,
        gather: Callable[[Any], Sequence[Any]] = lambda value: [value],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`every` steps, or `seconds` if they are given; `gather` gives the value of every rank, in one collective."""
        self._every = every
        self._seconds = seconds
        self._gather = gather
        self._clock = clock
        self._step: int | None = None
        self._saved = self._looked = clock()
        self._next = 0

    def start(self, step: int) -> None:
        """Training begins after this many earlier steps."""
        self._step, self._next = step, step + FIRST_LOOK
        self._saved = self._looked = self._clock()

    def is_due(self, step: int) -> bool:
        """Is a checkpoint due after this step? To be asked by all ranks after the same steps."""
        if self._seconds is None:
            return step % self._every == 0
        if self._step is None:
            self.start(step)
        if step < self._next:
            return False
        now = self._clock()
        elapsed, recent = now - self._saved, now - self._looked
        slowest, longest = (max(values) for values in zip(*self._gather((elapsed, recent)), strict=True))
        duration = longest / max(1, step - (self._step or 0))
        self._step, self._looked = step, now
        due: bool = slowest + duration / 2 >= self._seconds
        if due:
            self._saved, slowest = now, 0.0
        left = (self._seconds - slowest) / duration if duration else 1
        self._next = step + max(1, math.floor(left))
        return due
