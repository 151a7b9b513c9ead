# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Folders that are written to as root while a service owns them: whatever takes their names, they stay the same.

A service could put a link in the place of a folder between two calls. So each folder is opened once, and what lies in
it is named through the open folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Optional

from .._files import make_in
from .._refusal import Refusal
from .tree import remove

#: As many links as Linux follows in a path.
_LINKS = 40
_OPEN = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened(path: str) -> Iterator[str]:
    """The folder at a path, made where it is missing, under a name that stays its own.

    Raises:
        Refusal: A link is on the way that another user than root could have put there.
    """
    handle = _walk(path)
    try:
        with _named(handle, path) as name:
            yield name
    finally:
        os.close(handle)


def check(path: str) -> None:
    """Refuse what ``opened`` would refuse, without making a folder."""
    os.close(_walk(path, make=False))


@contextlib.contextmanager
def private(folder: str, name: str, path: str) -> Iterator[str]:
    """A new folder in an opened one that its owner alone may enter, until the end; ``path`` is for messages.

    What has the name is removed, as a run that was killed leaves one.
    """
    remove(os.path.join(folder, name))
    if not make_in(None, os.path.join(folder, name), 0o700):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    handle = os.open(os.path.join(folder, name), _OPEN)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise Refusal(f"{path} was replaced while it was made: stop what writes there")
        with _named(handle, path) as inner:
            yield inner
    finally:
        os.close(handle)
        remove(os.path.join(folder, name))


@contextlib.contextmanager
def _named(handle: int, path: str) -> Iterator[str]:
    """The name of an open folder; errors have its path."""
    name = f"/proc/self/fd/{handle}"
    try:
        yield name
    except OSError as error:
        if isinstance(error.filename, str) and (error.filename + "/").startswith(name + "/"):
            error.filename = path + error.filename[len(name) :]
        raise


def _walk(path: str, make: bool = True) -> int:
    """Open a folder by one name after the other; without ``make``, as far as it is there."""
    handle, left, links = os.open("/", _OPEN), path.split("/"), 0
    try:
        while left:
            name = left.pop(0)
            if name in ("", "."):
                continue
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    links += 1
                    if links > _LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    if not _is_own(os.fstat(handle), found):
                        raise Refusal(
                            f"{name} on the way to {path} is a link that another user than root may have put there: "
                            "replace it by the folder"
                        )
                    leads = os.readlink(name, dir_fd=handle)
                    left = leads.split("/") + left
                    handle = _instead(handle, "/", None) if leads.startswith("/") else handle
                    continue
            if make:
                make_in(handle, name, 0o755)
            elif not _is_there(handle, name):
                break
            handle = _instead(handle, name, handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _instead(handle: int, name: str, folder: Optional[int]) -> int:
    inner = os.open(name, _OPEN, dir_fd=folder)
    os.close(handle)
    return inner


def _is_own(folder: os.stat_result, link: os.stat_result) -> bool:
    """Whether nobody but root and the caller can have put a link into a folder."""
    mine = (0, os.geteuid())
    others = folder.st_mode & 0o022 and not folder.st_mode & stat.S_ISVTX
    return folder.st_uid in mine and link.st_uid in mine and not others
