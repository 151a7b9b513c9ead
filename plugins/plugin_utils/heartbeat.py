# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Lines for a reader who has seen none for a while, as long as a task takes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

#: A task that takes long says so less often: after 30 times the seconds of silence, and so on.
_RARER = 30
_OUTPUT = 1


class Heartbeat:
    """Writes ``lines`` whenever nothing was shown for some seconds. With 0 seconds it never does."""

    def __init__(self, seconds: float, lines: Callable[[float], Sequence[str]]) -> None:
        self._seconds, self._lines = seconds, lines
        self._begun = self._shown = time.monotonic()
        self._ended = threading.Event()
        if seconds > 0:
            threading.Thread(target=self._beat, name="gaudi3-progress", daemon=True).start()

    def shown(self) -> None:
        """A line was shown."""
        self._shown = time.monotonic()

    def task(self) -> None:
        """A task begins."""
        self._begun = time.monotonic()

    def end(self) -> None:
        """Nothing more is written."""
        self._ended.set()

    def _beat(self) -> None:
        while not self._ended.wait(min(1.0, self._seconds / 2)):
            now = time.monotonic()
            if now - self._shown < max(self._seconds, (now - self._begun) / _RARER):
                continue
            text = "".join(f"{line}\n" for line in self._lines(now))
            try:
                # Past Python's own buffer and its lock: Ansible forks, and a child would wait for a lock that is held.
                os.write(_OUTPUT, text.encode(errors="replace"))
            except OSError:
                return
            self._shown = now
