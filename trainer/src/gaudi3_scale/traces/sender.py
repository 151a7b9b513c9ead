"""A thread and a queue: a process hands its spans over and goes on, whatever the receiver does.

A receiver that is away is asked again, after a second first and after a minute in the end. Meanwhile the newest spans
are kept up to a limit. What is lost is counted, and said once, when the process ends.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from gaudi3_scale.traces.spans import Span

WAITING = 2048
"""Spans that are kept for a receiver that is slow or away; of more the oldest are dropped."""
BATCH = 256
"""Spans of one message."""
LINGER = 0.5
"""Seconds in which spans gather before they are sent."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a message that failed is sent again."""


class Export(Protocol):
    """Sends spans."""

    reason: str
    """Why the last call had to try again, or failed."""

    def __call__(self, spans: Sequence[Span], /) -> str | None:
        """Send them; says why that failed, or nothing if it did not."""


class Sender:
    """Sends the spans of one process."""

    def __init__(self, export: Export, log: Callable[[str], None]) -> None:
        """`export` is called in the thread; `log` gets the first failure, and at the end what got lost."""
        self._export, self._log = export, log
        self._spans: deque[Span] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._ending = False
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed = False

    def send(self, span: Span) -> None:
        """Take a span, at once."""
        with self._changed:
            if len(self._spans) >= WAITING:
                self._spans.popleft()
                self._dropped += 1
            self._spans.append(span)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
                with suppress(RuntimeError):  # no more threads for this process: spans wait, and are counted at the end
                    self._thread.start()

    def close(self, seconds: float) -> None:
        """Wait for what is under way, for some seconds at most, and say what did not arrive."""
        with self._changed:
            if self._ending or self._thread is None:
                return
            self._ending = True
            self._changed.notify()
        self._done.wait(seconds)
        with self._changed:
            missing = len(self._spans) + self._dropped
        if missing:
            self._log(f"traces: {missing} span(s) did not reach their receiver ({self._export.reason})")

    def _work(self) -> None:
        pause = FIRST_PAUSE
        while True:
            batch, ending = self._next()
            if not batch:
                break
            if self._deliver(batch):
                pause = FIRST_PAUSE
                continue
            if ending:
                break
            with self._changed:
                self._changed.wait_for(lambda: self._ending, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        self._done.set()

    def _next(self) -> tuple[list[Span], bool]:
        """The spans of the next message, and whether none come after those that wait; no span at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._spans or self._ending)
            self._changed.wait_for(lambda: self._ending or len(self._spans) >= BATCH, LINGER)
            return [span for span, _ in zip(self._spans, range(BATCH), strict=False)], self._ending

    def _deliver(self, batch: list[Span]) -> bool:
        try:
            problem = self._export(batch)
        except Exception as error:  # whatever the library raises
            problem = type(error).__name__
        if problem is None:
            sent, left = {id(span) for span in batch}, len(batch)
            with self._changed:
                while self._spans and id(self._spans[0]) in sent:
                    self._spans.popleft()
                    left -= 1
                self._dropped -= left  # to make room, while they were under way
            return True
        if not self._failed:
            self._failed = True
            self._log(f"traces cannot be sent ({problem}): the job goes on, and it is tried again")
        return False
