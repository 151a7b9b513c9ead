"""Writing so that a reader, or a restart after a kill, sees the old content or the new one, never a part.

What a training does not depend on goes through an `Outage`: a full disk is no reason to stop.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

PENDING = 10_000
"""Lines of a file that are kept while it cannot be written; the oldest go first."""


class Outage:
    """Writes whose failure is reported once, and which are made again as soon as another succeeds."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        """`say` reports; standard error without it."""
        self.failures = 0
        """Writes that failed."""
        self._say = say or _say
        self._failing: dict[Path, Callable[[], object]] = {}
        self._lines: dict[Path, list[str]] = {}

    def attempt(self, path: Path, write: Callable[[], object]) -> bool:
        """Call `write`, which writes this file, now and if need be later; did it succeed?"""
        done = self._try(path, write)
        if done:
            self.retry()
        return done

    def append(self, path: Path, line: str) -> bool:
        """Add a line to a file, after those that could not be written before."""
        waiting = self._lines.setdefault(path, [])
        waiting.append(line)
        del waiting[:-PENDING]

        def write() -> None:
            append_lines(path, "".join(waiting))
            waiting.clear()

        return self.attempt(path, write)

    def retry(self) -> None:
        """Make the writes that failed again."""
        for path, write in list(self._failing.items()):
            self._try(path, write)

    def _try(self, path: Path, write: Callable[[], object]) -> bool:
        try:
            write()
        except OSError as error:
            self.failures += 1
            if not self._failing:
                self._say(
                    f"{path} cannot be written ({error.strerror or error}): training goes on, and what is missing is "
                    "written as soon as it can be"
                )
            self._failing[path] = write
            return False
        if self._failing.pop(path, None) and not self._failing:
            self._say(f"{path} is written again")
        return True


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def append_lines(path: Path, text: str) -> None:
    """Add whole lines by one write; what a disk took of them before it was full is taken back."""
    data = text.encode()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data  # a predecessor was killed while it wrote
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def overwrite(path: Path, text: str) -> None:
    """Put a text into the room that a file has already, for a disk that is full; longer ones may not fit.

    One write replaces everything: what is left of a longer text becomes spaces, which JSON allows at its end.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        data = text.encode()
        os.pwrite(descriptor, data.ljust(os.fstat(descriptor).st_size), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Replace a file's content; durable also waits until it would survive a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and new names within a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
