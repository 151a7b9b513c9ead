"""Files, links and devices of the simulated kernel, and how they are made and removed.

Device files need numbers that can be opened in a container. Those of a Gaudi (major 261) have no driver here: opening
them fails with ENXIO, and kernels in use seldom offer character devices of user space (CUSE). Of the numbers that every
container may open, 1:7 (``/dev/full``) is the one that little depends on: a batch system that forbids a job the cards
does not take ``/dev/null`` away with it.
"""

from __future__ import annotations

import os
import shutil
import stat

from . import cards, paths

_CARD_BYTES = 64
_DEVICE_NUMBER = (1, 7)


class Text:
    """A file with a fixed content."""

    __slots__ = ("content", "mode")

    def __init__(self, content: str | bytes, mode: int = 0o444) -> None:
        self.content = content.encode() if isinstance(content, str) else content
        self.mode = mode

    def make(self, target: str) -> None:
        """Write what differs."""
        if _beginning(target, len(self.content) + 1) == self.content:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            file = os.open(target, flags)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            file = os.open(target, flags)
        try:
            os.write(file, self.content)
            os.fchmod(file, self.mode | stat.S_IWUSR)
        finally:
            os.close(file)


class Link:
    """A symbolic link."""

    __slots__ = ("target",)

    def __init__(self, target: str) -> None:
        self.target = target

    def make(self, target: str) -> None:
        """Make the link unless it is there."""
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(self.target, target)


class Device:
    """A character device that can be opened; a plain file where nothing is real."""

    __slots__ = ("group", "mode")

    def __init__(self, group: str = "root", mode: int = 0o666) -> None:
        self.group = group
        self.mode = mode

    def make(self, target: str) -> None:
        """Make the device file, or give it its owner and mode again."""
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if nothing_is_real():
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, self.mode))
            else:
                os.mknod(target, self.mode | stat.S_IFCHR, os.makedev(*_DEVICE_NUMBER))
            self.own(target)

    def own(self, target: str) -> None:
        """Owner, group and mode, as udev sets them."""
        if not nothing_is_real():
            os.chown(target, 0, _group_id(self.group))
        os.chmod(target, self.mode)


class CardFile(Device):
    """The memory and the holder of one card, which the holder keeps up to date: made empty and then left alone."""

    __slots__ = ()

    def make(self, target: str) -> None:
        """Make the file of a card that nobody ever held."""
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target + ".new", "wb") as file:
                file.write(cards.FORMAT.to_bytes(8, "little") + bytes(_CARD_BYTES - 8))
            self.own(target + ".new")
            os.rename(target + ".new", target)


TYPE_CHECKING = False
if TYPE_CHECKING:
    Entry = Text | Link | Device


def nothing_is_real() -> bool:
    """Whether the node is a folder, without devices and without other users."""
    return bool(paths.root())


def make(wanted: dict[str, Entry]) -> None:
    """Make sure that every file is there with its content."""
    root = paths.root()
    for path, entry in wanted.items():
        entry.make(root + path)


def remove(path: str, roots: tuple[str, ...]) -> None:
    """Remove a file and the folders that it leaves empty, up to the roots, which are always there."""
    target = paths.at(path)
    if os.path.isdir(target) and not os.path.islink(target):
        shutil.rmtree(target)
    elif os.path.lexists(target):
        os.unlink(target)
    folder = os.path.dirname(path)
    while folder not in roots:
        try:
            os.rmdir(paths.at(folder))
        except OSError:
            break
        folder = os.path.dirname(folder)


def _beginning(target: str, size: int) -> bytes | None:
    """The first bytes of a file, or nothing where it cannot be read; thousands are read at each load of a module."""
    try:
        file = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    content = os.read(file, size)
    os.close(file)
    return content


def _group_id(name: str) -> int:
    """Number of a group of the node; root's where the group does not exist."""
    for line in (paths.read_text("/etc/group") or "").splitlines():
        fields = line.split(":")
        if fields[0] == name and len(fields) > 2 and fields[2].isdigit():
            return int(fields[2])
    return 0
