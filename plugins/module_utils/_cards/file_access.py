# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What users of a node may open: the device files of the cards, and the folders on the way to a file."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Optional

from .pci import listing

#: Folders of device files that a process on a card opens, and how their names begin. Acquiring a card needs those of
#: RDMA, too, as the ports are the card's.
DEVICE_FOLDERS = (("accel", "accel"), ("infiniband", "uverbs"))
_WIDE = 0o006


def permits(mode: int, owner: tuple[int, int], uid: int, gids: Iterable[int], wanted: int) -> bool:
    """Whether the kernel grants ``wanted``, three bits: the first of owner, group and others that fits decides."""
    shift = 6 if uid == owner[0] else 3 if owner[1] in gids else 0
    return uid == 0 or mode >> shift & wanted == wanted


def numbers_of(user: str) -> tuple[int, set[int]]:
    """Number and groups of a user; one that does not exist yet is nobody's, without groups, as a role makes it."""
    try:
        entry = pwd.getpwnam(user)
        return entry.pw_uid, set(os.getgrouplist(user, entry.pw_gid))
    except KeyError:
        return -1, set()


def first_closed(path: str, uid: int, gids: Iterable[int], last: Optional[int] = None) -> Optional[str]:
    """The first folder on the way to a file, or the file, that a user cannot enter or read; links are followed.

    ``last`` is what the end of the way has to grant, by default what reading it takes. What is not there is another
    matter.
    """
    gids = set(gids)
    for place in _ways(path):
        try:
            found = os.stat(place)
        except OSError:
            continue
        folder = stat.S_ISDIR(found.st_mode)
        at_end = place in (os.path.abspath(path), os.path.realpath(path))
        wanted = (last or (0o5 if folder else 0o4)) if at_end else 0o1 if folder else 0
        if not (_listed(place) or permits(found.st_mode, (found.st_uid, found.st_gid), uid, gids, wanted)):
            return place
    return None


def _ways(path: str) -> list[str]:
    """Every folder on the way to a path and the path itself, also on the ways that links lead."""
    found: list[str] = []
    rest = [os.path.abspath(path)]
    while rest and len(found) < 1000:
        parts = rest.pop().strip(os.sep).split(os.sep)
        here = os.sep
        for count, part in enumerate(parts, 1):
            found.append(here)
            here = os.path.join(here, part)
            if os.path.islink(here):
                target = os.path.join(os.path.dirname(here), os.readlink(here))
                rest.append(os.path.normpath(os.path.join(target, *parts[count:])))
                break
        else:
            found.append(here)
    return list(dict.fromkeys(found))


def missing(paths: Iterable[str]) -> list[str]:
    """Those of the paths that are not there, as they were given; ``~`` is the home of who asks."""
    return [path for path in paths if not os.path.lexists(os.path.expanduser(path))]


def unreadable(paths: Iterable[str], user: str) -> list[dict[str, Any]]:
    """What a user cannot read of files and folders, and the first folder on the way, or itself, that is closed.

    One that is not there has no such folder.
    """
    uid, gids = numbers_of(user)
    found = []
    for path in paths:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            found.append({"path": path, "closed": None})
            continue
        except OSError:
            # Root itself may be kept out of a folder of the network, whose files the job's user can read.
            continue
        closed = first_closed(path, uid, gids)
        if closed is not None:
            found.append({"path": path, "closed": closed})
    return found


def script_access(path: str, user: str) -> dict[str, Any]:
    """Whether a script is there, and the first folder on the way, or the script, that is closed to a user.

    Python reads a script; a program of another kind has to be executable, too.
    """
    if not os.path.isfile(path):
        return {"path": path, "there": False, "closed": None}
    uid, gids = numbers_of(user)
    closed = first_closed(path, uid, gids)
    if closed is None and not path.endswith(".py"):
        found = os.stat(path)
        if not (_listed(path) or permits(found.st_mode, (found.st_uid, found.st_gid), uid, gids, 0o5)):
            closed = path
    return {"path": path, "there": True, "closed": closed}


def _listed(path: str) -> bool:
    """Whether an access list may admit users whom the mode does not."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:
        return False


@dataclass(frozen=True)
class DeviceFile:
    """A device file, and by whom it may be opened for reading and writing."""

    path: str
    owner: str
    group: str
    mode: str
    uid: int
    gid: int
    #: An access list may admit users whom the mode does not.
    listed: bool = False

    @classmethod
    def at(cls, path: str) -> DeviceFile:
        """The file as it is; OSError where it is not."""
        found = os.stat(path)
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        return cls(path, _user(found.st_uid), _group(found.st_gid), mode, found.st_uid, found.st_gid, _listed(path))

    def opens_for(self, uid: int, gids: Iterable[int]) -> bool:
        """Whether the kernel lets this user open it for reading and writing."""
        return self.listed or permits(int(self.mode, 8), (self.uid, self.gid), uid, gids, 0o6)

    def as_dict(self) -> dict[str, Any]:
        """The file as a module returns it."""
        return {key: value for key, value in asdict(self).items() if key in ("path", "owner", "group", "mode")}


def device_files(dev: str = "/dev") -> list[DeviceFile]:
    """The device files of cards and of their ports; none before the driver is loaded.

    They are looked at and not opened: the driver takes an open card for one in use, and resets it when it is closed.
    """
    found = []
    for folder, prefix in DEVICE_FOLDERS:
        for name in listing(dev, folder):
            if name.startswith(prefix):
                try:
                    found.append(DeviceFile.at(os.path.join(dev, folder, name)))
                except OSError:  # removed meanwhile, as cards come and go with their driver
                    continue
    return found


def owning_groups(files: Iterable[DeviceFile]) -> list[str]:
    """The groups that open what is not open to all; never root's, which opens far more than cards."""
    needed = {
        file.group
        for file in files
        if file.gid != 0 and int(file.mode, 8) & _WIDE != _WIDE and int(file.mode, 8) & 0o060
    }
    return sorted(needed)


@dataclass(frozen=True)
class Access:
    """What a user with some groups can open."""

    #: Groups that the user is given beside its own.
    groups: list[str]
    #: Those of them that the node does not have.
    unknown: list[str]
    closed: list[DeviceFile]


def access(files: Iterable[DeviceFile], user: str, groups: Optional[Iterable[str]]) -> Access:
    """What ``user`` opens with these groups beside its own; None gives it the groups that own the files.

    A user that does not exist yet is one without groups, as a role makes it.
    """
    files = list(files)
    given = owning_groups(files) if groups is None else sorted(set(groups))
    uid, gids = numbers_of(user)
    unknown = []
    for name in given:
        try:
            gids.add(int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid)
        except KeyError:
            unknown.append(name)
    return Access(given, unknown, [file for file in files if not file.opens_for(uid, gids)])


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
