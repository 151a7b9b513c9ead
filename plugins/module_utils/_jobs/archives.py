# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Folders of jobs that were moved aside for another specification, and how many of them are kept."""

from __future__ import annotations

import os
import re
from typing import Optional


def archives(jobs_dir: str, name: str) -> list[str]:
    """The folders that a job's output was moved to, the longest moved first."""
    pattern = re.compile(re.escape(name) + r"\.([0-9a-f]{8}|unknown)(-[0-9]+)?")
    found = []
    for entry in os.scandir(jobs_dir):
        if pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            # Moving a folder changes its inode, and not when it was written to.
            found.append((entry.stat(follow_symlinks=False).st_ctime_ns, entry.name, entry.path))
    return [path for _moved, _name, path in sorted(found)]


def check_kept(kept: Optional[int]) -> None:
    """ValueError for a number of folders that cannot be kept."""
    if kept is not None and kept < 0:
        raise ValueError(f"keep_archives is {kept}: give 0 or more, or leave it out to keep all.")


def surplus(jobs_dir: str, name: str, archived: str, kept: Optional[int]) -> list[str]:
    """Those that are too many once ``archived`` is the newest of them, the longest moved first; None keeps all."""
    moved = [*archives(jobs_dir, name), archived]
    return [] if kept is None else moved[: max(len(moved) - kept, 0)]
