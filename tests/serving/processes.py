"""Processes of this machine, out of /proc."""

from __future__ import annotations

import contextlib
from pathlib import Path


def family(number: int) -> list[int]:
    """What a process has started, and what these have, each behind its parent."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            # The name is in parentheses, and may have some itself.
            parents[int(path.parent.name)] = int(path.read_bytes().rpartition(b")")[2].split()[1])
    found, known = [], [number]
    while known:
        known = [child for child, parent in sorted(parents.items()) if parent in known]
        found += known
    return found
