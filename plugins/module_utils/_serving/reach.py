# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whose files a model's folder may hand on: root makes the copy, and reads nothing that the folder's owner may not.

A download of the hub has links in its folders, to files of the same user. A link to a file of somebody else that is
not open to all would have its content served.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from .._printable import printable
from .._refusal import Refusal


def may_hand_on(owner: int, status: os.stat_result) -> bool:
    """Whether the owner of a folder may give away a file with this status."""
    return owner == 0 or status.st_uid == owner or bool(status.st_mode & stat.S_IROTH)


@contextmanager
def opened(folder: str, name: str) -> Iterator[int]:
    """A file of a model's folder, open for reading; ``Refusal`` for one that its owner may not hand on.

    Looked at once it is open: what a name leads to may be another file a moment later.
    """
    place = os.path.join(folder, name)
    handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Refusal(f"{printable(place)} is no file: export the model again.")
        if not may_hand_on(os.stat(folder).st_uid, status):
            raise Refusal(
                f"{printable(place)} leads to a file of another user that is not open to all, so it is no file of this "
                "model: put a copy in its place."
            )
        yield handle
    finally:
        os.close(handle)
