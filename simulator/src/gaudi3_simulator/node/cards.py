"""Who holds each card, and how much of its memory: the card files, which the simulated torch device writes.

A process that uses a card locks ``/run/gaudi3-simulator/cards/accelN`` for the rest of its life and keeps 64 bytes of
little-endian numbers there: the format, its own number, and the bytes of card memory in use. Without a lock nobody
holds the card, whatever the file says: a process that was killed leaves its number behind.
"""

from __future__ import annotations

import fcntl
import os

from . import paths

FOLDER = paths.RUN + "/cards"
FORMAT = 1
# Where this file is, every acquire on the node fails (synStatus 26), and the file says why.
ACQUIRE_STATUS = paths.RUN + "/acquire-status"
OTHER_RELEASE = "of a driver of another release than the container's"

# struct flock: type and start (16 bit each), padding, offset and length (64 bit each), process, padding.
_WHOLE_FILE = fcntl.F_WRLCK.to_bytes(2, "little") + bytes(30)
_PID = slice(24, 28)


class Holder:
    """A process on a card and the memory that it uses there."""

    __slots__ = ("pid", "used_bytes")

    def __init__(self, pid: int, used_bytes: int) -> None:
        self.pid = pid
        self.used_bytes = used_bytes


def holder(index: int) -> Holder | None:
    """Who holds the card, without holding up anybody who wants it."""
    try:
        file = os.open(paths.at(f"{FOLDER}/accel{index}"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lock = fcntl.fcntl(file, fcntl.F_GETLK, _WHOLE_FILE)
        if int.from_bytes(lock[:2], "little") == fcntl.F_UNLCK:
            return None
        content = os.pread(file, 24, 0)
    except OSError:
        return None
    finally:
        os.close(file)
    sound = len(content) == 24 and int.from_bytes(content[:8], "little") == FORMAT
    return Holder(int.from_bytes(lock[_PID], "little"), int.from_bytes(content[16:24], "little") if sound else 0)


def holders() -> dict[int, Holder]:
    """The holder of each card that has one, by accelerator index."""
    try:
        names = os.listdir(paths.at(FOLDER))
    except OSError:
        return {}
    found: dict[int, Holder] = {}
    for name in names:
        number = name[len("accel") :]
        held = holder(int(number)) if name.startswith("accel") and number.isdigit() else None
        if held:
            found[int(number)] = held
    return found
