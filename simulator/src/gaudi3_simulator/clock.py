"""What a person sees of long steps: one line each, and on a terminal its number and the time that it takes."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TextIO


class Teller:
    """Says steps on standard error.

    On a terminal the last line carries the time since it was said, which goes on until the next line or the end of the
    ``with`` block. Elsewhere a line is the text alone. A text that is indented is a part of the step above it.
    """

    def __init__(self, every: float = 1.0) -> None:
        self._every = every
        self._lock = threading.Lock()
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._line = ""
        self._began = 0.0
        self._prefix = ""

    def __call__(self, text: str) -> None:
        """Say a step, which ends the one before."""
        self.end()
        indent = text[: len(text) - len(text.lstrip())]
        if not self._stream.isatty():
            print(text, file=self._stream, flush=True)
            return
        self._line, self._began = f"{indent}{self._prefix}{text.lstrip()}", time.monotonic()
        self._show("")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, args=(self._ended,), daemon=True)
        self._thread.start()

    def step(self, number: int, total: int) -> None:
        """What is said from now on belongs to this step out of `total`."""
        self._prefix = f"step {number} of {total}: "

    def end(self) -> None:
        """End the line of the last step, with the time that it took."""
        if self._thread is None or self._ended is None:
            return
        self._ended.set()
        self._thread.join()
        self._thread = self._ended = None
        self._show("\n")

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        self._prefix = ""

    @property
    def _stream(self) -> TextIO:
        return sys.stderr

    def _tick(self, ended: threading.Event) -> None:
        while not ended.wait(self._every):
            self._show("")

    def _show(self, behind: str) -> None:
        seconds = int(time.monotonic() - self._began)
        took = f" {seconds // 60}:{seconds % 60:02}" if seconds else ""
        room = shutil.get_terminal_size().columns - 1 - len(took)
        cut = self._line if behind or len(self._line) <= room else f"{self._line[: room - 3]}..."
        with self._lock:
            self._stream.write(f"\r{cut}{took}{behind}")
            self._stream.flush()
