"""Ends a process in which nothing moves any more: a collective on the cards waits for a peer for good.

HCCL takes no timeout: the `_create_process_group_hccl` of HabanaAI/gaudi-pytorch-bridge drops the one it is given, and
`Work.wait` ignores its own. So a thread counts the seconds since the process last got on, and ends it when they are
too many. The interpreter itself may be blocked, by a call that waits without releasing it: then faulthandler's thread,
which needs no interpreter, ends the process somewhat later.
"""

from __future__ import annotations

import contextlib
import faulthandler
import sys
import threading
import time
from collections.abc import Callable, Iterator

TICK = 1.0
"""Seconds between two looks."""
BACKSTOP = 15.0
"""Seconds more after which the process ends though the interpreter is blocked."""


class Watchdog:
    """Watches from `watch` on, unless it is `paused`; the process reports to it what it does."""

    def __init__(
        self,
        start: float,
        bound: float,
        end: Callable[[float], None],
        enabled: bool = True,
    ) -> None:
        """`start` seconds may pass without progress until the device has finished something, `bound` after that.

        `end` is called with the bound that was passed, in a thread.
        """
        self._start, self._bound = max(start, bound), bound
        self._end, self._enabled = end, enabled
        self.started: Callable[[], None] = _nothing
        """Called once, when the device first finished something."""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._watching = False
        self._waited = 0.0
        self._issued = 0
        self._worked = 0.0
        self._pace: float | None = None

    @classmethod
    def off(cls) -> Watchdog:
        """One that watches nothing, for a process that waits for nobody."""
        return cls(0.0, 0.0, lambda seconds: None, enabled=False)

    def limit(self) -> float:
        """Seconds without progress after which the process ends.

        A device that works asynchronously may have several passes before it, for which the host waits all at once.
        """
        return self._start if self._pace is None else self._bound + self._issued * self._pace

    def beat(self) -> None:
        """The process got on: the device was given another pass to do."""
        with self._lock:
            self._worked += self._waited
            self._waited = 0.0
            self._issued += 1

    def seen(self) -> None:
        """The device has finished all that it was given."""
        with self._lock:
            known = self._pace is not None and self._issued
            self._pace = (self._worked + self._waited) / self._issued if known else 0.0
            self._waited = self._worked = 0.0
            self._issued = 0
        started, self.started = self.started, _nothing
        started()

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Watch what is done inside; what is done first may have to be compiled."""
        if self._enabled and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
            self._thread.start()
        with self.anew(), self._switched(self._enabled):
            yield

    @contextlib.contextmanager
    def anew(self) -> Iterator[None]:
        """Something else is done inside, which may have to be compiled, too."""
        before, self._pace = self._pace, None
        try:
            yield
        finally:
            self._pace = before

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is done inside ends by itself, and may take long."""
        with self._switched(False):
            yield

    @contextlib.contextmanager
    def _switched(self, watching: bool) -> Iterator[None]:
        before = self._watching
        self._switch(watching)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, watching: bool) -> None:
        with self._lock:
            self._watching, self._waited = watching, 0.0
            if not watching and self._thread is not None:
                faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(TICK)
            now = time.monotonic()
            if self.passed(now - before):
                self._end(self.limit())
                return
            before = now

    def passed(self, seconds: float) -> bool:
        """Whether these seconds are too many."""
        with self._lock:
            if not self._watching:
                return False
            # A process that was stopped, and goes on, has not waited for others meanwhile.
            self._waited += min(seconds, 2 * TICK)
            left = self.limit() - self._waited
            if threading.current_thread() is self._thread:
                with contextlib.suppress(OSError, ValueError, RuntimeError):  # stderr is no file
                    faulthandler.dump_traceback_later(max(0.0, left) + BACKSTOP, exit=True, file=sys.__stderr__ or 2)
            return left < 0


def _nothing() -> None:
    """Said once."""
