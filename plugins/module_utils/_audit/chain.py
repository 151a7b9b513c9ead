# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A file that only grows, of one JSON line for each entry. Each line holds the SHA-256 of the line before it.

The first line holds ``START``. A writer that is killed leaves a line without an end; the next one ends it, leaves it
where it is, and says in its own line how long that is (``after_cut``), so that nothing is lost and nothing hidden.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from .._files import make_folder, open_to_read, sync_folder

START = "0" * 64
HASH = re.compile(r"[0-9a-f]{64}")
#: No record has so many lines. A number with thousands of digits could not be counted on.
MOST = 2**63
#: Bytes that are read at once from the end.
BLOCK = 65536


def digest(line: bytes) -> str:
    """The hash of a line without its end."""
    return hashlib.sha256(line).hexdigest()


def parse(line: bytes) -> Optional[dict[str, Any]]:
    """The record of a line; None where it is none, such as what a killed writer left."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number, previous = (found.get("n"), found.get("previous")) if isinstance(found, dict) else (None, None)
    # True is an int to Python, and no number of a line.
    whole = (
        isinstance(number, int)
        and not isinstance(number, bool)
        and 0 < number < MOST
        and isinstance(previous, str)
        and HASH.fullmatch(previous)
    )
    return found if whole else None


def append(path: str, entry: Mapping[str, Any]) -> str:
    """Write an entry as the last line, on the disk when this returns; the hash of the line.

    Writers at the same time wait for each other. OSError where it cannot be written; what was written of the line by
    then is taken back.
    """
    folder = os.path.dirname(path)
    make_folder(folder or ".", 0o700)
    is_new = not os.path.lexists(path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        line, end = _next(handle, entry)
        _write(handle, end + line + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    if is_new:
        sync_folder(folder or ".")
    return digest(line)


def lines(path: str) -> Iterator[bytes]:
    """The lines of a file with their ends, as they were when it was opened. OSError where it cannot be read."""
    with os.fdopen(open_to_read(path), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)  # of a pipe nobody knows where its last line ends
        fcntl.flock(file, fcntl.LOCK_SH)
        size = os.fstat(file.fileno()).st_size
        fcntl.flock(file, fcntl.LOCK_UN)
        while size > 0:
            line = file.readline(size)
            if not line:
                return
            size -= len(line)
            yield line


def _next(handle: int, entry: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The line that follows what is there, and what ends a line that was cut."""
    tail, cut, number = _tail(handle)
    record: dict[str, Any] = {"n": number + 1, "previous": digest(tail) if number else START}
    if cut:
        record["after_cut"] = cut
    text = json.dumps({**record, **entry}, ensure_ascii=True, separators=(",", ":"), default=str)
    size = os.fstat(handle).st_size
    ended = not size or os.pread(handle, 1, size - 1) == b"\n"
    return text.encode(), b"" if ended else b"\n"


def _tail(handle: int) -> tuple[bytes, list[int], int]:
    """The last line, the lengths of the last lines that are no records, and the number of all lines."""
    size = os.fstat(handle).st_size
    if not size:
        return b"", [], 0
    wanted = BLOCK
    while True:
        start = max(0, size - wanted)
        text = _read(handle, start, size)
        found = text[:-1].split(b"\n") if text.endswith(b"\n") else text.split(b"\n")
        whole = found if start == 0 else found[1:]  # the first may be the rest of a longer line
        cut: list[int] = []
        for line in reversed(whole):
            record = parse(line)
            if record is not None:
                return whole[-1], cut[::-1], int(record["n"]) + len(cut)
            cut.append(len(line))
        if start == 0:
            return whole[-1], cut[::-1], len(whole)
        wanted *= 4


def _read(handle: int, start: int, end: int) -> bytes:
    parts = []
    while start < end:
        part = os.pread(handle, end - start, start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _write(handle: int, text: bytes) -> None:
    before = os.fstat(handle).st_size
    try:
        done = 0
        while done < len(text):
            done += os.write(handle, text[done:])
    except OSError:
        with contextlib.suppress(OSError):  # a file that may only grow keeps the part, which the next writer ends
            os.ftruncate(handle, before)
        raise
