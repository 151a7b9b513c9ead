# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Follows the files into which the vendor's libraries log, so that their lines get into the node's journal.

A job's folder of logs is its user's: no link is followed, and a file counts only where its owner is the folder's, so
that nobody has a file read that he may not read himself. How far each file was read is kept, so that a restart neither
loses nor repeats lines.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Optional

#: Bytes of one file that are read at a time, of all files together, and of one line.
OF_A_FILE = 256 * 1024
OF_ALL = 1024 * 1024
OF_A_LINE = 16 * 1024
ENDINGS = (".log", ".txt")
#: Folders below a folder of logs that are looked into.
DEPTH = 3
_LEVEL = re.compile(rb"\[\s*(critical|error|warning|warn|info|debug|trace)\s*\]", re.IGNORECASE)
_PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "warn": 4, "info": 6, "debug": 7, "trace": 7}
_NOTICE = 5


@dataclass(frozen=True)
class LogFile:
    """A file of the vendor's libraries, open."""

    handle: int
    path: str
    job: str
    """The job whose it is; empty where it is none's."""
    size: int
    key: str
    """What stays the same while the file is written."""


def files(tools: str, jobs: str) -> Iterator[LogFile]:
    """Every file of logs of tools and of jobs. Each is closed when the next is asked for."""
    yield from _below(tools, "", DEPTH)
    try:
        names = sorted(entry.name for entry in os.scandir(jobs) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        yield from _below(f"{jobs}/{name}/habana_logs", name, DEPTH)


def _below(top: str, job: str, depth: int) -> Iterator[LogFile]:
    parent = None
    try:
        # The job's own folder may be the user's, too.
        parent = os.open(os.path.dirname(top), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        handle = os.open(os.path.basename(top), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return
    finally:
        if parent is not None:
            os.close(parent)
    try:
        yield from _in(handle, top, job, depth)
    finally:
        os.close(handle)


def _in(folder: int, path: str, job: str, depth: int) -> Iterator[LogFile]:
    owner = os.fstat(folder).st_uid
    for name in sorted(os.listdir(folder)):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        try:
            handle = os.open(name, flags, dir_fd=folder)
        except OSError:
            continue
        try:
            about = os.fstat(handle)
            if stat.S_ISDIR(about.st_mode) and depth:
                yield from _in(handle, f"{path}/{name}", job, depth - 1)
            elif stat.S_ISREG(about.st_mode) and name.endswith(ENDINGS) and _is_own(about, owner, job):
                yield LogFile(handle, f"{path}/{name}", job, about.st_size, f"{about.st_dev}:{about.st_ino}")
        finally:
            os.close(handle)


def _is_own(about: os.stat_result, owner: int, job: str) -> bool:
    """Whether a file is what it seems. Of tools, whoever runs one writes into a folder that is open to all."""
    return about.st_nlink == 1 and (about.st_uid == owner or not job)


def new_lines(found: LogFile, offset: int, most: int) -> tuple[list[bytes], int]:
    """The lines behind an offset, as far as they are complete, and how far the file has been read then."""
    if found.size < offset:
        offset = 0  # It was cut, and begins again.
    content = os.pread(found.handle, min(most, OF_A_FILE), offset)
    end = content.rfind(b"\n") + 1
    if not end and len(content) >= OF_A_LINE:
        end = len(content)  # A line without an end.
    return [line[:OF_A_LINE] for line in content[:end].split(b"\n") if line.strip()], offset + end


def priority(line: bytes) -> int:
    """How urgent a line is, as syslog counts: by the level that it names."""
    found = _LEVEL.search(line[:200])
    return _PRIORITIES[found[1].decode().lower()] if found else _NOTICE


def datagram(line: bytes, path: str, job: str) -> bytes:
    """A line as the journal takes it from programs."""
    fields: Mapping[str, bytes] = {
        "MESSAGE": line,
        "PRIORITY": str(priority(line)).encode(),
        "SYSLOG_IDENTIFIER": b"habana",
        "GAUDI_LOG_FILE": os.fsencode(path),
        "GAUDI_JOB": os.fsencode(job),
    }
    # With its length before it, so that no line end in a value begins another field.
    return b"".join(
        name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n" for name, value in fields.items() if value
    )


def start_of(key: str, size: int, offsets: Mapping[str, int], is_first_run: bool) -> int:
    """From where a file is read. What was there before the first run is not sent."""
    known: Optional[int] = offsets.get(key)
    return known if known is not None else size if is_first_run else 0
