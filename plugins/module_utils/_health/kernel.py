# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Records of the kernel log, each with the device that the kernel names for it.

A user of the node chooses words in that log: names of processes and files are in the lines about crashes. So what a
line says of itself is no proof of who wrote it. /dev/kmsg has one record per entry, without line ends in its text. It
tells the kernel's records from those of programs, and names the device that a driver reported with. The text of
``dmesg`` has none of that, and is read only where there is no /dev/kmsg, such as in a container.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

KMSG = "dev/kmsg"
#: More records than any log buffer of a node holds; a log that is written faster than it is read has to end.
MOST_RECORDS = 200_000
_RECORD_BYTES = 1 << 16

_HEADER = re.compile(r"(\d{1,10}),\d+,(\d{1,20}),[^;]*;(.*)", re.S)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_STAMP = re.compile(r"^(?:<\d+>)?\[?\s*(\d{1,12}\.\d{1,9})\]?\s+")
# How the kernel speaks of a process: COMM[PID]: or COMM[PID] at the start, or the words of its own sentences. COMM has
# up to 15 characters of the process's own choice.
_OF_A_PROCESS = re.compile(
    r"^.{0,48}\[\d+\](?::|\s+(?:trap|general protection|bad|segfault))"
    r"|\b(?:segfault at |traps?: |trap (?:invalid|int3|stack|divide|bounds)|general protection fault|Killed process "
    r"|Out of memory|oom-killer|oom-kill:|oom_reaper|page allocation failure|core ?dump|audit[:(]|Comm: "
    r"|used greatest stack depth|potentially unexpected fatal signal|(?:user )?process ['`\"])",
    re.I,
)


@dataclass(frozen=True)
class Record:
    """One record. ``at_s`` is the time in seconds since the boot, None where it is not known.

    ``subsystem`` and ``device`` are what the kernel names, such as ``pci`` and ``+pci:0000:19:00.0``. With
    ``attributed`` the source has them for every record of a device: a record without them is not a device's.
    """

    message: str
    at_s: float | None = None
    subsystem: str = ""
    device: str = ""
    attributed: bool = False

    @property
    def is_of_a_process(self) -> bool:
        """Whether the record is about a process, so that it has words of that process's user."""
        return _OF_A_PROCESS.search(self.message) is not None


def read_kmsg(path: str) -> str:
    """The text of /dev/kmsg from its first record on that nobody cleared; OSError where it cannot be read."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    parts: list[bytes] = []
    try:
        with contextlib.suppress(OSError):
            os.lseek(handle, 0, os.SEEK_DATA)
        while len(parts) < MOST_RECORDS:
            try:
                part = os.read(handle, _RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # the oldest record was overwritten in the meantime: the next read gives the one after it
            if not part:
                break
            parts.append(part)
    finally:
        os.close(handle)
    return b"".join(parts).decode("utf-8", "replace")


def of_kmsg(text: str) -> list[Record]:
    """The kernel's own records of /dev/kmsg; what programs wrote there is left out."""
    found: list[Record] = []
    entry: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith(" ") and entry:
            entry.append(line[1:])
            continue
        record = _entry(entry)
        if record is not None:
            found.append(record)
        entry = [line] if line else []
    return found


def _entry(lines: list[str]) -> Record | None:
    header = _HEADER.fullmatch(lines[0]) if lines else None
    if header is None or int(header.group(1)) >> 3 != 0:  # the facility: 0 is the kernel's, and no program may use it
        return None
    named = dict(line.partition("=")[::2] for line in lines[1:])
    message = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), header.group(3))
    return Record(
        message, int(header.group(2)) / 1e6, named.get("SUBSYSTEM", ""), named.get("DEVICE", ""), attributed=True
    )


def of_text(lines: Iterable[str]) -> list[Record]:
    """The records of a text of ``dmesg``. Where lines have times, one without is the rest of a record before it."""
    found: list[Record] = []
    stamped = False
    for line in lines:
        stamp = _STAMP.match(line)
        stamped = stamped or stamp is not None
        if stamp is None and stamped:
            continue
        found.append(Record((line[stamp.end() :] if stamp else line).strip(), float(stamp.group(1)) if stamp else None))
    return found
