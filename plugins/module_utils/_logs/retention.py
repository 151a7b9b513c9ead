# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a collector keeps of the nodes' journals: by age and by size.

The collector closes a file of a node when it is full, and only such a file can be deleted while the node sends. The
age of a file is that of its last entry by the collector's own clock: what a node writes decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from .entries import sender_of


@dataclass(frozen=True)
class File:
    """A file of the collector."""

    name: str
    size: int
    """Bytes that it takes on the disk."""
    written_at: float
    """When it was last written, in seconds since 1970."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing is written into it any more."""
        return "@" in self.name


def superfluous(files: Iterable[File], now: float, longest: float, most: int) -> list[str]:
    """Names of the files to delete: those above ``longest`` seconds of age, then as many as are above ``most`` bytes.

    Of these each is the oldest of the node that has most, so that one that writes without end loses its own lines. A
    file that is not closed goes by its age alone: its node has sent nothing for so long.
    """
    ours = sorted((each for each in files if sender_of(each.name)), key=lambda each: (each.written_at, each.name))
    # A clock that was set back makes no file older.
    gone = [each for each in ours if now - each.written_at > longest]
    left = [each for each in ours if each not in gone]
    sizes: Counter[Optional[str]] = Counter()
    for each in left:
        sizes[sender_of(each.name)] += each.size
    closed = [each for each in left if each.is_closed]
    while closed and sum(sizes.values()) > most:
        # The oldest of several that have as much.
        largest = max(closed, key=lambda each: sizes[sender_of(each.name)])
        closed.remove(largest)
        gone.append(largest)
        sizes[sender_of(largest.name)] -= largest.size
    return [each.name for each in gone]
