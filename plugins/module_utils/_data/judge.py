# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What of a set is on the disk as its index says, and what is to be copied and why."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import Any, NamedTuple, Optional

from .index import CHECKED, File

BLOCK = 4 * 2**20

Stamps = dict[str, list[Any]]
"""By the name of a file: size, time of change in nanoseconds, SHA-256. As the trainer writes and believes it."""


class Judged(NamedTuple):
    """The files of a folder beside its index."""

    good: Stamps
    bad: dict[str, str]
    """Why a file is to be copied, by its name: missing, size or changed."""


def compare_files(folder: str, files: dict[str, File], verify: bool = False) -> Judged:
    """Hold each file against the index. One is read where its stamp differs from the record, or with `verify`."""
    known = stamps(folder)
    good: Stamps = {}
    bad: dict[str, str] = {}
    for name, (size, sha256) in files.items():
        path = os.path.join(folder, name)
        try:
            found: Optional[os.stat_result] = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            found = None
        if found is None:
            bad[name] = "missing"
        elif not stat.S_ISREG(found.st_mode):
            bad[name] = "changed"
        elif found.st_size != size:
            bad[name] = "size"
        else:
            stamp = [size, found.st_mtime_ns, sha256]
            if (verify or known.get(name) != stamp) and digest(path) != sha256:
                bad[name] = "changed"
            else:
                good[name] = stamp
    return Judged(good, bad)


def stamps(folder: str) -> Stamps:
    """The record of the files that were compared; empty where there is none that can be read."""
    try:
        with open(os.path.join(folder, CHECKED), "rb") as file:
            values = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def digest(path: str) -> str:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            found.update(block)
    return found.hexdigest()
