"""Writing so that a reader, or a restart after a kill, sees the old content or the new one, never a part.

What a training does not depend on goes through an `Outage`: a full disk is no reason to stop.

Others may write in the same folder, and put a link where a file is about to be written. No link is followed here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PENDING = 10_000
"""Lines of a file that are kept while it cannot be written; the oldest go first."""


class Outage:
    """Writes whose failure is reported once, and which are made again as soon as another succeeds."""

    def __init__(self, log: Callable[[str], None] | None = None) -> None:
        """`log` reports; standard error without it."""
        self.failures = 0
        """Writes that failed."""
        self._log = log or _log
        self._failing: dict[Path, Callable[[], object]] = {}
        self._lines: dict[Path, list[str]] = {}

    def attempt(self, path: Path, write: Callable[[], object]) -> bool:
        """Call `write`, which writes this file, now and if need be later; did it succeed?"""
        done = self._try(path, write)
        if done:
            self.retry()
        return done

    def append(self, path: Path, line: str) -> bool:
        """Add a line to a file, after those that could not be written before."""
        waiting = self._lines.setdefault(path, [])
        waiting.append(line)
        del waiting[:-PENDING]

        def write() -> None:
            append_lines(path, "".join(waiting))
            waiting.clear()

        return self.attempt(path, write)

    def retry(self) -> None:
        """Make the writes that failed again."""
        for path, write in list(self._failing.items()):
            self._try(path, write)

    def _try(self, path: Path, write: Callable[[], object]) -> bool:
        try:
            write()
        except OSError as error:
            self.failures += 1
            if not self._failing:
                self._log(
                    f"{path} cannot be written ({error.strerror or error}): training goes on, and what is missing is "
                    "written as soon as it can be"
                )
            self._failing[path] = write
            return False
        if self._failing.pop(path, None) and not self._failing:
            self._log(f"{path} is written again")
        return True


def _log(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def append_lines(path: Path, text: str) -> None:
    """Add whole lines by one write; what a disk took of them before it was full is taken back."""
    data = text.encode()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data  # a predecessor was killed while it wrote
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def overwrite(path: Path, text: str) -> None:
    """Put a text into the room that a file has already, for a disk that is full; longer ones may not fit.

    One write replaces everything: what is left of a longer text becomes spaces, which JSON allows at its end.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        data = text.encode()
        os.pwrite(descriptor, data.ljust(os.fstat(descriptor).st_size), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Replace a file's content; durable also waits until it would survive a power cut."""
    with opened_folder(path.parent) as folder, draft(folder, path.name, durable) as file:
        file.write(text.encode())


@contextlib.contextmanager
def opened_folder(root: Path, *names: str, make: bool = False) -> Iterator[int]:
    """The folder of these names below `root`, open; none of the names may be a link. `make` makes those missing."""
    handles: list[int] = []
    try:
        handles.append(os.open(root, _FOLDER))
        for name in names:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handles[-1])
            handles.append(os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=handles[-1]))
        yield handles[-1]
    finally:
        for handle in handles:
            os.close(handle)


@contextlib.contextmanager
def draft(folder: int, name: str, durable: bool = True, ending: str = "tmp") -> Iterator[BinaryIO]:
    """A new file of an open folder, which takes the place of `name` when all went well; nobody can tell its name."""
    temporary = f".{name}.{secrets.token_hex(8)}.{ending}"
    handle = os.open(temporary, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if durable:
        os.fsync(folder)


def read_in(folder: int, name: str) -> BinaryIO:
    """A regular file of an open folder, to be read; OSError for a link, a pipe or a device of that name."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", name)
    return os.fdopen(handle, "rb")


def create(path: Path) -> BinaryIO:
    """A new file in the place of whatever has this name."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, _NEW, 0o666), "wb")


def lock_file(path: Path) -> BinaryIO:
    """A file to be locked, which is never written to."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "r+b")


def sync_directory(path: Path) -> None:
    """Make renames and new names within a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
