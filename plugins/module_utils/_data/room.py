# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which sets make room for another: by a budget, and by what is free on the disk. Judged before anything is copied."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from .._files import nearest_folder
from .._refusal import Refusal


class Held(NamedTuple):
    """A set on the node."""

    key: str
    size: int
    """Bytes."""
    used: float
    """When it was last asked for, in seconds since 1970."""
    removable: bool
    """It was copied here by the module, and nothing uses it."""


def make(held: Iterable[Held], size: int, copied: int, free: int, budget: int, path: str) -> list[str]:
    """The keys of the sets to remove, least recently asked for first.

    `size` is that of the set asked for when whole, `copied` what is still to be copied, `free` what the disk has, all
    in bytes; a `budget` of 0 is none. Refusal where removing all that may be removed is not enough.
    """
    others = sorted(held, key=lambda each: (each.used, each.key))
    over = sum(each.size for each in others) + size - budget if budget else 0
    short = copied - free
    gone: list[str] = []
    for each in others:
        # A disk that is short is no reason to remove what no budget allows to be removed.
        if over <= 0 and (short <= 0 or not budget):
            break
        if each.removable and each.size:
            gone.append(each.key)
            over -= each.size
            short -= each.size
    kept = [each.key for each in others if not each.removable]
    beside = f" beside {', '.join(kept)}, in use or not copied by this module" if kept else ""
    if over > 0:
        raise Refusal(
            f"The set has {size} bytes, and the budget of {budget} bytes for {path} lacks {over}{beside}: "
            "raise budget_bytes, or stop the jobs that use other sets"
        )
    if short > 0:
        raise Refusal(
            f"{copied} bytes are to be copied to {path}, and its disk lacks {short} of them{beside}: free some, "
            "remove a set with state=absent, or give a path on another disk"
        )
    return gone


def free(path: str) -> int:
    """Bytes that the disk of a folder has free for others than root; the folder may be missing yet."""
    about = os.statvfs(nearest_folder(path))
    return about.f_bavail * about.f_frsize
