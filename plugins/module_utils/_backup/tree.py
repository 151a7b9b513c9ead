# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Reads files and folders that are in use: each file as it was at one moment, with its digest."""

from __future__ import annotations

import contextlib
import errno
import grp
import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterable
from typing import Optional

from .._files import make_in
from .._refusal import Refusal
from .manifest import FOLDER, LINK, PLAIN, Entry

_CHUNK = 1 << 20
_TRIES = 5


def owner_of(number: int) -> str:
    """The name of a user, or the number of one without a name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group_of(number: int) -> str:
    """The name of a group, or the number of one without a name."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def scan(path: str, item: str) -> list[Entry]:
    """What lies at a path, without a copy; empty where nothing does."""
    try:
        return take(path, None, item)
    except (FileNotFoundError, NotADirectoryError):
        return []


def take(
    source: str,
    target: Optional[str],
    item: str,
    below: str = "",
    names: Optional[Iterable[str]] = None,
    link: bool = False,
) -> list[Entry]:
    """Copy what lies at a path (None: only read it) and say what it is; FileNotFoundError where nothing does.

    Sockets, pipes and devices are left out. ``names`` are the ones of a folder that are taken. With ``link``, files are
    linked where both lie on one disk: for those that nobody writes again.
    """
    found = os.lstat(source)
    owner, group, mode = owner_of(found.st_uid), group_of(found.st_gid), stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        leads = os.readlink(source)
        if target is not None:
            os.symlink(leads, target)
        return [Entry(item, below, LINK, mode, owner, group, 0, leads)]
    if stat.S_ISREG(found.st_mode):
        size, digest = _file(source, target, link)
        return [Entry(item, below, PLAIN, mode, owner, group, size, digest)]
    if not stat.S_ISDIR(found.st_mode):
        return []
    if target is not None:
        make_in(None, target, 0o700)
    entries = [Entry(item, below, FOLDER, mode, owner, group)]
    for name in sorted(os.listdir(source) if names is None else names):
        # Who replaces a file writes a draft first, which may be gone by now.
        with contextlib.nullcontext() if names is not None or link else contextlib.suppress(FileNotFoundError):
            inner = f"{below}/{name}" if below else name
            entries += take(os.path.join(source, name), target and os.path.join(target, name), item, inner, None, link)
    return entries


def _file(source: str, target: Optional[str], link: bool) -> tuple[int, str]:
    """Size and digest of a file, as it was at one moment. Of one that grows, what it had when it was opened."""
    for _attempt in range(_TRIES):
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            before = os.fstat(handle)
            linked = target is not None and link and _linked(source, target)
            digest, left = hashlib.sha256(), before.st_size
            with contextlib.ExitStack() as stack:
                out = None
                if target is not None and not linked:
                    draft = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                    out = stack.enter_context(os.fdopen(draft, "wb"))
                while left and (chunk := stream.read(min(left, _CHUNK))):
                    left -= len(chunk)
                    digest.update(chunk)
                    if out is not None:
                        out.write(chunk)
            after = os.fstat(handle)
            if not left and (after.st_mtime_ns == before.st_mtime_ns or after.st_size > before.st_size):
                return before.st_size, digest.hexdigest()
            if linked and target is not None:
                os.unlink(target)
    raise Refusal(f"{source} was written each time it was read: stop what writes it, and run again")


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            return False
        raise
    return True


def remove(path: str) -> None:
    """Remove a file or folder that may be there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def is_empty(path: str) -> bool:
    """Whether nothing is at a path but a folder without content."""
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path))


def put(source: str, target: str, entries: Iterable[Entry]) -> None:
    """Make the entries of one item at a path where nothing is, of files that have their content.

    Owner and mode are set last, so that nobody reads a file of another before.
    """
    wanted = sorted(entries)
    for entry in wanted:
        place = os.path.join(target, entry.path) if entry.path else target
        origin = os.path.join(source, entry.path) if entry.path else source
        if entry.kind == FOLDER:
            make_in(None, place, 0o700)
        elif entry.kind == LINK:
            os.symlink(entry.content, place)
        else:
            draft = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(draft, "wb") as out, open(origin, "rb") as stream:
                shutil.copyfileobj(stream, out, _CHUNK)
    for entry in reversed(wanted):
        place = os.path.join(target, entry.path) if entry.path else target
        user, group = numbers_of(entry)
        found = os.lstat(place)
        if (found.st_uid, found.st_gid) != (user, group):
            os.chown(place, user, group, follow_symlinks=False)
        if entry.kind != LINK:
            os.chmod(place, entry.mode)


def numbers_of(entry: Entry) -> tuple[int, int]:
    """The numbers that its owner and group have on this machine; ``Refusal`` where it does not know them."""
    try:
        user = int(entry.owner) if entry.owner.isdigit() else pwd.getpwnam(entry.owner).pw_uid
    except KeyError:
        raise Refusal(_unknown(entry, "user", entry.owner)) from None
    try:
        return user, int(entry.group) if entry.group.isdigit() else grp.getgrnam(entry.group).gr_gid
    except KeyError:
        raise Refusal(_unknown(entry, "group", entry.group)) from None


def _unknown(entry: Entry, what: str, name: str) -> str:
    return (
        f"{entry.shown} is of the {what} {name}, whom this machine does not know: run the playbook that installs the "
        "service first, then restore"
    )
