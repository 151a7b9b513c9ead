"""A thread and a queue for each tracker: training hands values over and goes on, whatever the tracker does."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from gaudi3_scale.tracking.trackers import Ending, Tracker

WAITING = 4096
"""Steps that are kept for a tracker that is slow or away; of more the oldest are dropped."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a call that failed is made again."""


class TrackerQueue:
    """Hands one tracker what it is given, in order, and again if that failed."""

    def __init__(self, name: str, tracker: Tracker, parameters: Mapping[str, Any], log: Callable[[str], None]) -> None:
        """`name` is for people; `log` gets the first failure, and at the end what is missing."""
        self._name, self._tracker, self._parameters, self._log = name, tracker, parameters, log
        self._items: deque[tuple[int, dict[str, float]]] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._ending: Ending | None = None
        self._done = threading.Event()
        self._failed = False
        threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True).start()

    def offer(self, step: int, values: dict[str, float]) -> None:
        """Take the values of a step, at once."""
        with self._changed:
            if len(self._items) >= WAITING:
                self._items.popleft()
                self._dropped += 1
            self._items.append((step, values))
            self._changed.notify()

    def end(self, ending: Ending) -> None:
        """Nothing more will come."""
        with self._changed:
            self._ending = ending
            self._changed.notify()

    def wait(self, deadline: float) -> None:
        """Wait for what is under way until a `time.monotonic()`, and say what did not arrive."""
        done = self._done.wait(max(0.0, deadline - time.monotonic()))
        missing = len(self._items) + self._dropped
        if missing:
            self._log(f"{self._name} lacks {missing} logged step(s); metrics.jsonl has them all")
        elif not done:
            self._log(f"{self._name} has not ended its run in time; it has all logged steps")

    def _work(self) -> None:
        if not self._until_done(lambda: self._tracker.open(self._parameters)):
            return
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._ending is not None)
                item = self._items[0] if self._items else None
            if item is None:
                break
            if not self._until_done(lambda item=item: self._tracker.log(item[1], item[0])):  # type: ignore[misc]
                return
            with self._changed:
                if self._items and self._items[0] is item:
                    self._items.popleft()
        assert self._ending is not None
        ending = self._ending
        self._attempt(lambda: self._tracker.close(ending))
        self._done.set()

    def _until_done(self, call: Callable[[], None]) -> bool:
        """Call until it works, or until it fails after the end."""
        pause = FIRST_PAUSE
        while not self._attempt(call):
            with self._changed:
                if self._changed.wait_for(lambda: self._ending is not None, pause):
                    if self._attempt(call):
                        return True
                    self._done.set()
                    return False
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    def _attempt(self, call: Callable[[], None]) -> bool:
        try:
            call()
        except Exception as error:  # whatever a tracker raises
            if not self._failed:
                self._failed = True
                words = str(error).strip().splitlines() or ["no message"]
                self._log(
                    f"{self._name} cannot be reached ({type(error).__name__}: {words[0][:200]}): "
                    "training goes on, and it is tried again"
                )
            return False
        return True
