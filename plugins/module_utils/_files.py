# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whole files, written at once or not at all. A power cut at any instant leaves the old file or the new one.

Files and folders have the mode that is asked for, whatever the umask of the one who runs this.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def write_file(path: str, content: Union[str, bytes], mode: int = 0o644, group: int = -1) -> None:
    """Write a file, owned by the caller, in a folder that is there."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_in(folder, os.path.basename(path), content, mode, group)
    finally:
        os.close(folder)


def write_in(folder: int, name: str, content: Union[str, bytes], mode: int = 0o644, group: int = -1) -> None:
    """Write a file of an open folder.

    Group and mode are set on the open file, as what has its name by then may be another file. Until they are, only the
    caller can read it.
    """
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    draft = f".{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(draft, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchown(handle, -1, group)
            os.fchmod(handle, mode)
            stream.write(data)
            stream.flush()
            os.fsync(handle)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)


def make_folder(path: str, mode: int = 0o755) -> None:
    """Make a folder and those missing above it, each with this mode. What is there stays as it is.

    FileExistsError or NotADirectoryError where something else is in the place of one of them.
    """
    if os.path.isdir(path):
        return
    path = path.rstrip("/")
    if os.path.dirname(path):
        make_folder(os.path.dirname(path), mode)
    if not make_in(None, path, mode) and not os.path.isdir(path):
        raise FileExistsError(errno.EEXIST, "it is no folder", path)


def make_in(folder: Optional[int], name: str, mode: int) -> bool:
    """Make one folder with this mode, of an open folder or (None) at a path; False where something has its name.

    The mode is set on the opened folder, as what has its name by then may be another one. The bit by which a folder
    hands down its group is inherited.
    """
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return False
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fchmod(handle, mode | os.fstat(handle).st_mode & stat.S_ISGID)
    finally:
        os.close(handle)
    return True


def nearest_folder(path: str) -> str:
    """The folder, or the nearest one above it that is there: on whose disk it will be."""
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    return path


def open_to_read(path: str) -> int:
    """Open a file that somebody named; returns the number of the open file.

    The null device is read too, and a pipe that a shell made for a command, as ``<(...)`` does.

    Raises:
        OSError: It cannot be opened, is a folder, or is a named pipe or another device: who reads one of these may wait
            for ever, or never come to an end.
    """
    _refuse_odd(os.stat(path), path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse_odd(os.fstat(handle), path)
        os.set_blocking(handle, True)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _refuse_odd(about: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    is_shells = stat.S_ISFIFO(about.st_mode) and path.startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    is_null = stat.S_ISCHR(about.st_mode) and about.st_rdev == os.stat(os.devnull).st_rdev
    if not (stat.S_ISREG(about.st_mode) or is_shells or is_null):
        raise OSError(errno.EINVAL, "Not a regular file", path)


def sync_file(path: str) -> None:
    """See that a file and its name are on the disk."""
    _sync(path, os.O_NOFOLLOW)
    sync_folder(os.path.dirname(path) or ".")


def sync_tree(top: str) -> None:
    """See that a folder and all that is in it is on the disk, or a file."""
    if not os.path.isdir(top):
        sync_file(top)
    for folder, _folders, names in os.walk(top):
        for path in (*(os.path.join(folder, name) for name in names), folder):
            if not os.path.islink(path):
                _sync(path)


def sync_folder(folder: str) -> None:
    """See that the names in a folder are on the disk."""
    _sync(folder, os.O_DIRECTORY)


def _sync(path: str, flags: int = 0) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stands(path: str, mode: int = 0o644) -> bool:
    """Whether a file is there, has this mode and is the caller's: who owns one can change it at any time."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return False
    return stat.S_IMODE(status.st_mode) == mode and status.st_uid == os.geteuid()


def head(path: str) -> str:
    """How a file that may not be as it is to be is shown in a difference, before its content."""
    status = os.stat(path)
    owner = "" if status.st_uid == os.geteuid() else f", owner {status.st_uid}"
    return f"# mode {stat.S_IMODE(status.st_mode):04o}{owner}\n"


def in_the_way(path: str) -> str:
    """What is said of a folder that has the name of a file."""
    return f"{path} is a folder, and a file of that name is to be there: look at what made it, and move it away."


def ensure_file(
    module: AnsibleModule, path: str, content: Optional[str], mode: int = 0o644, own: bool = True
) -> Optional[dict[str, Any]]:
    """Make a file have this content, mode and owner (None: not exist); return its diff, or None where it was so.

    Missing folders above it are made with mode 0755. Without ``own`` it may be another user's, as in a folder of the
    controller that a team shares. In check mode nothing is written, the same is returned.
    """
    if os.path.isdir(path):
        module.fail_json(msg=in_the_way(path))
    before = _content(path)
    status = None if before is None else os.stat(path)
    as_asked = status is not None and stat.S_IMODE(status.st_mode) == mode and (not own or stands(path, mode))
    if before == content and (content is None or as_asked):
        return None
    shown = "" if before is None else head(path) + before
    if not module.check_mode:
        if content is None:
            os.unlink(path)
        else:
            make_folder(os.path.dirname(path) or ".")
            write_file(path, content, mode)
    after = "" if content is None else f"# mode {mode:04o}\n{content}"
    return {"before_header": path, "after_header": path, "before": shown, "after": after}


def _content(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None
