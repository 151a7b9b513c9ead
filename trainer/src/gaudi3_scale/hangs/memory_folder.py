"""Folders of rings in memory: a launcher that was killed leaves its one behind, and the next launcher removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from gaudi3_scale.files import lock_file

PREFIX = "gaudi3-rings-"
_LOCK = "launcher"
_held: list[BinaryIO] = []


def hold(folder: Path) -> None:
    """The folder is in use for as long as this process lives, which the kernel knows across containers, too."""
    file = lock_file(folder / _LOCK)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _held.append(file)


def remove_left_behind(memory: Path) -> None:
    """Remove this user's folders that no launcher holds any more; one without a lock is just being made."""
    for folder in memory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid() or not (folder / _LOCK).exists():
                continue
            with lock_file(folder / _LOCK) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
