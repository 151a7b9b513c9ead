# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which process holds a lock, as the kernel tells it."""

from __future__ import annotations

import os

from .._printable import printable

UNKNOWN = "a process that cannot be seen from here"


def holder_of(handle: int, proc: str) -> str:
    """The process that has a lock of flock on an open file, with its command; `proc` is where the kernel tells it."""
    inode = os.fstat(handle).st_ino
    try:
        with open(os.path.join(proc, "locks"), encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return UNKNOWN
    for words in lines:
        # 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1048602 0 EOF; one that waits has an arrow behind the number. The device
        # is left out: some file systems tell another one here.
        if words[1:2] == ["FLOCK"] and len(words) > 5 and words[5].rpartition(":")[2] == str(inode):
            return _named(words[4], proc) if words[4].isdigit() and words[4] != "0" else UNKNOWN
    return UNKNOWN


def _named(number: str, proc: str) -> str:
    try:
        with open(os.path.join(proc, number, "cmdline"), "rb") as file:
            command = file.read(400).rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        command = ""
    return f"process {number}" + (f" ({printable(command, 120)})" if command else "")
