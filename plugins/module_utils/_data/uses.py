# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which sets are on a node, when each was last asked for, and which of them a process uses."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence

from .._printable import few
from .._refusal import Refusal
from . import holders, records
from .copy import draft_of
from .index import INDEX
from .room import Held

#: Seconds between two looks at a lock that another process holds.
WAIT = 0.2
#: What the lock's file of a set says that the module copied.
_OURS = b"copied by gaudi_dataset\n"
_LOCK = re.compile(r"\.([A-Za-z0-9][A-Za-z0-9_-]{0,100})\.lock\Z")


def lock_of(path: str, key: str) -> str:
    """A file that who uses a set may hold a shared lock on; it says too whether the module copied the set."""
    return os.path.join(path, f".{key}.lock")


def is_ours(path: str, key: str) -> bool:
    """Whether the module copied the set, and may replace and remove it.

    By what it wrote into the lock's file: flock(1) makes an empty one, beside a set that was prepared there, too.
    """
    try:
        return os.lstat(lock_of(path, key)).st_size > 0
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def alone(path: str, timeout: float, proc: str) -> Iterator[None]:
    """Be the only one who copies into or removes from a folder. Whoever comes second waits, and says after `timeout`
    seconds who holds it.
    """
    lock = os.path.join(path, ".lock")
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + timeout
        while not _lock(handle):
            if time.monotonic() >= until:
                raise Refusal(
                    f"{lock} is held by {holders.holder_of(handle, proc)} for more than {timeout:g} seconds: wait for "
                    "it to end, stop it, or raise lock_timeout"
                )
            time.sleep(WAIT)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def unused(path: str, key: str, proc: str, running: records.Running) -> Iterator[None]:
    """Hold a set that nothing uses, so that nobody begins to by the lock; Refusal where something does."""
    try:
        handle = os.open(lock_of(path, key), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        handle = -1
    try:
        if not (handle < 0 or _lock(handle)) or mapped(os.path.join(path, key), proc):
            raise Refusal(f"{os.path.join(path, key)} is in use: stop the job that reads it first")
        if recorded := records.users(path, key, running):
            raise Refusal(
                f"{os.path.join(path, key)} is in use by {few(recorded)}: stop it, or say with state=unused that it "
                "needs the set no longer"
            )
        yield
    finally:
        if handle >= 0:
            os.close(handle)


@contextlib.contextmanager
def shared(path: str, key: str) -> Iterator[None]:
    """Keep a set from being replaced or removed for a moment; Refusal where it is being so now."""
    try:
        handle = os.open(lock_of(path, key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        # Prepared there by somebody else: never removed.
        yield
        return
    try:
        if not _lock(handle, fcntl.LOCK_SH):
            raise Refusal(f"{os.path.join(path, key)} is being copied or removed now: run this again after it")
        yield
    finally:
        os.close(handle)


def asked(path: str, key: str) -> None:
    """Note that a set was asked for now. Its users may hold a lock on the file, so everybody may read it."""
    handle = os.open(lock_of(path, key), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o644)
        if not os.fstat(handle).st_size:
            os.write(handle, _OURS)
        os.utime(handle)
    finally:
        os.close(handle)


def held(path: str, proc: str, running: records.Running, but: Sequence[str]) -> list[Held]:
    """The sets of a folder except for one, prepared there by others or copied. `but` begins with that one, and the
    others in it stay.
    """
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return []
    ours = {found.group(1) for found in map(_LOCK.match, names) if found and is_ours(path, found.group(1))}
    others = {name for name in names if os.path.isfile(os.path.join(path, name, INDEX))}
    found = []
    for key in sorted((ours | others) - {but[0]}):
        folder, draft = os.path.join(path, key), draft_of(path, key)
        removable = key in ours and key not in but and not _in_use(path, key, proc, running)
        used = os.stat(lock_of(path, key)).st_mtime if key in ours else 0.0
        found.append(Held(key, size_of(folder) + size_of(draft), used, removable))
    return found


def mapped(folder: str, proc: str) -> bool:
    """Whether a process has a file of a folder open in its memory: so the trainer reads its data, in containers too.

    By the files' devices and numbers, as a process in a container names them by other paths; and by their paths, as
    some file systems tell another device there.
    """
    ours, below = set(), os.fsencode(os.path.realpath(folder)) + b"/"
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            about = entry.stat(follow_symlinks=False)
            ours.add(f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x} {about.st_ino}")
    for number in os.listdir(proc) if ours else []:
        if number.isdigit():
            # A process may end meanwhile.
            with contextlib.suppress(OSError), open(os.path.join(proc, number, "maps"), "rb") as maps:
                for line in maps:
                    columns = line.split(None, 5)
                    if b" ".join(columns[3:5]).decode("ascii", "replace") in ours or b"".join(columns[5:]).startswith(
                        below
                    ):
                        return True
    return False


def size_of(folder: str) -> int:
    """Bytes of the files under a folder; 0 where it is not there."""
    found = 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found += os.lstat(os.path.join(place, name)).st_size
    return found


def _in_use(path: str, key: str, proc: str, running: records.Running) -> bool:
    try:
        with unused(path, key, proc, running):
            return False
    except Refusal:
        return True


def _lock(handle: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
