"""Lines of a growing file that anybody may have written: read once, in bounded pieces, again when it was replaced.

A file may lose its end (a full disk, a resumed job that drops the lines after its checkpoint), be replaced by another
one, end in half a line, or hold something else than JSON. None of that stops the reader.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

PIECE = 2**20
"""Bytes that are read at once."""
LONGEST_LINE = 2**16
"""A longer line is no line of a trainer's; it is skipped and counted."""
REMEMBERED = 64
"""Bytes before the place read up to that must still be there; otherwise the file is another one."""
LONGEST_SAMPLE = 80
"""Characters of the first unreadable line that are shown."""


class JsonLines:
    """Hands each new line that is a JSON object to ``accept``, and calls ``reset`` where the file is another one.

    ``accept`` raises ValueError, KeyError or TypeError at a line that is not what it should be.
    """

    def __init__(self, path: Path, accept: Callable[[dict[str, Any]], None], reset: Callable[[], None]) -> None:
        self.path = path
        self._accept, self._reset = accept, reset
        self._identity: tuple[int, int] | None = None
        self.size = 0
        """Of the file, when it was looked at last."""
        self.error = ""
        """Why it cannot be read, as the end of a sentence; empty where it can, or is not there."""
        self._begin()

    def _begin(self) -> None:
        self.offset = 0
        self.lines = 0
        self.malformed = 0
        self.first_malformed = 0
        """Number of the first line that cannot be read."""
        self.sample = ""
        """The beginning of that line."""
        self._rest = b""
        self._skipping = False
        self._before = b""

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read than was read."""
        return self.offset < self.size

    def poll(self, most: int) -> bool:
        """Read what is new, at most about ``most`` bytes; whether there was something."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            gone = self._identity is not None
            self.error = ""
            if gone:
                self._restart(None)
            return gone
        except OSError as error:
            return self._unreadable("it is a link" if error.errno == errno.ELOOP else str(error.strerror))
        try:
            return self._read(handle, most)
        except OSError as error:
            return self._unreadable(str(error.strerror))
        finally:
            os.close(handle)

    def _unreadable(self, why: str) -> bool:
        """There is nothing to read on; whether that is new."""
        changed, self.error, self.size = not self.error, why, self.offset
        return changed

    def _read(self, handle: int, most: int) -> bool:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return self._unreadable("it is no regular file")
        self.error, self.size = "", about.st_size
        identity = (about.st_dev, about.st_ino)
        is_new = self._identity is None
        if identity != self._identity or not self._goes_on(handle):
            self._restart(identity)
        read = 0
        while read < most and self.offset < self.size:
            piece = os.pread(handle, min(PIECE, most - read, self.size - self.offset), self.offset)
            if not piece:
                break
            read += len(piece)
            self.offset += len(piece)
            self._before = (self._before + piece)[-REMEMBERED:]
            self._take(piece)
        return bool(read) or is_new

    def _goes_on(self, handle: int) -> bool:
        """Whether what was read last is still there: a file may be cut off and have grown again."""
        return os.pread(handle, len(self._before), self.offset - len(self._before)) == self._before

    def _restart(self, identity: tuple[int, int] | None) -> None:
        was_read = self.offset > 0
        self._identity = identity
        self._begin()
        if identity is None:
            self.size = 0
        if was_read:
            self._reset()

    def _take(self, piece: bytes) -> None:
        *whole, rest = (self._rest + piece).split(b"\n")
        for line in whole:
            self.lines += 1
            if self._skipping or len(line) > LONGEST_LINE:
                self._skipping = False
                self._refuse(line)
            elif line.strip():
                self._accept_line(line)
        if len(rest) > LONGEST_LINE:
            self._skipping = True
        # Of a line that is too long only the beginning is kept.
        self._rest = rest[: LONGEST_SAMPLE * 4] if self._skipping else rest

    def _accept_line(self, line: bytes) -> None:
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise TypeError
            self._accept(found)
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            self._refuse(line)

    def _refuse(self, line: bytes) -> None:
        self.malformed += 1
        if not self.first_malformed:
            self.first_malformed = self.lines
            self.sample = line[: LONGEST_SAMPLE * 4].decode("utf-8", "replace")[:LONGEST_SAMPLE]
