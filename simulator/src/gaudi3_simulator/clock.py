"""What a person sees of long steps: one line each, and on a terminal its number and the time that it takes."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO


class Teller:
    """Says steps on standard error.

    On a terminal the last line carries the time since it was said, which goes on until the next line or the end of the
    ``with`` block. Elsewhere a line is the text alone, and comes again with its number and time as long as the step
    lasts. A text that is indented is a part of the step above it. Threads may say steps, and the last one shows.
    """

    def __init__(self, every: float = 1.0, again: float = 10.0) -> None:
        self._every = every
        self._again = again
        self._lock = threading.Lock()
        self._saying = threading.RLock()
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._line = ""
        self._began = 0.0
        self._prefix = ""

    def __call__(self, text: str) -> None:
        """Say a step, which ends the one before."""
        with self._saying:
            self.end()
            indent = text[: len(text) - len(text.lstrip())]
            self._line, self._began = f"{indent}{self._prefix}{text.lstrip()}", time.monotonic()
            terminal = self._stream.isatty()
            if terminal:
                self._show("")
            else:
                print(text, file=self._stream, flush=True)
            self._ended = threading.Event()
            rewrite = (self._every, lambda: self._show("")) if terminal else (self._again, self._repeat)
            self._thread = threading.Thread(target=_tick, args=(self._ended, *rewrite), daemon=True)
            self._thread.start()

    def step(self, number: int, total: int) -> None:
        """What is said from now on belongs to this step out of `total`."""
        self._prefix = f"step {number} of {total}: "

    def end(self) -> None:
        """End the line of the last step, with the time that it took."""
        with self._saying:
            if self._thread is None or self._ended is None:
                return
            self._ended.set()
            self._thread.join()
            self._thread = self._ended = None
            if self._stream.isatty():
                self._show("\n")

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        self._prefix = ""

    @property
    def _stream(self) -> TextIO:
        return sys.stderr

    @property
    def _took(self) -> str:
        seconds = int(time.monotonic() - self._began)
        return f" {seconds // 60}:{seconds % 60:02}" if seconds else ""

    def _repeat(self) -> None:
        print(f"{self._line}{self._took}", file=self._stream, flush=True)

    def _show(self, behind: str) -> None:
        took = self._took
        room = shutil.get_terminal_size().columns - 1 - len(took)
        cut = self._line if behind or len(self._line) <= room else f"{self._line[: room - 3]}..."
        with self._lock:
            self._stream.write(f"\r{cut}{took}{behind}")
            self._stream.flush()


def _tick(ended: threading.Event, every: float, show: Callable[[], None]) -> None:
    while not ended.wait(every):
        show()
