"""What a long preparation says of itself: a bar on a terminal, else a line now and then; nothing if it is short."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

QUIET_SECONDS = 3.0
LINE_SECONDS = 15.0
BAR_SECONDS = 0.25


class PreparationProgress:
    """Counts work done and tokens written."""

    def __init__(
        self,
        size: int,
        done: int,
        log: Callable[[str], None],
        bar: bool,
        clock: Callable[[], float] = time.monotonic,
        what: str = "",
    ) -> None:
        """`size` and `done` are in the source's units; work that an earlier run did counts for no rate."""
        self._what = what
        self.tokens = 0
        self._size = max(1, size)
        self._first = done
        self._log = log
        self._wants_bar = bar
        self._bar: Any = None
        self._task: Any = None
        self._clock = clock
        self._began = clock()
        self._next = self._began + QUIET_SECONDS

    def __enter__(self) -> PreparationProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int) -> None:
        """So much of `size` is done."""
        now = self._clock()
        if now < self._next:
            return
        rate = self.tokens / (now - self._began)
        if self._wants_bar:
            self._draw(done, rate)
            self._next = now + BAR_SECONDS
        else:
            self._log(
                f"preparing data{self._what}: {100 * done / self._size:.0f} %, {self.tokens:,} tokens, "
                f"{rate:,.0f} tokens/s, about {_duration(self._remaining(done, now))} left"
            )
            self._next = now + LINE_SECONDS

    def _remaining(self, done: int, now: float) -> float:
        worked = done - self._first
        return (now - self._began) * (self._size - done) / worked if worked else 0.0

    def _draw(self, done: int, rate: float) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        if self._bar is None:
            shown = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
            self._bar = Progress(TextColumn(f"preparing data{self._what}"), *shown, auto_refresh=False)
            self._task = self._bar.add_task("", total=self._size, completed=done, rate="")
            self._bar.start()
        self._bar.update(self._task, completed=done, rate=f"{rate:,.0f} tokens/s", refresh=True)


def _duration(seconds: float) -> str:
    """Rounded to what matters."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
