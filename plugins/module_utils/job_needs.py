# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a training job needs of its node beside the trainer: an interface, device files that its user opens, modules."""

from __future__ import annotations

import grp
import json
import os
import pwd
import socket
import stat
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Optional

from ansible_collections.gaudi3.scale.plugins.module_utils.accel import works
from ansible_collections.gaudi3.scale.plugins.module_utils.pci import listing, read

#: Runs a program: argv to exit status, output, errors.
Run = Callable[[list[str]], tuple[int, str, str]]
#: Folders of device files that a process on a card opens, and how their names begin. Acquiring a card needs those of
#: RDMA, too, as the ports are the card's.
DEVICE_FOLDERS = (("accel", "accel"), ("infiniband", "uverbs"))
_WIDE = 0o006


# --- the interface ---


def interface_of(listed: str, addresses: Iterable[str]) -> Optional[str]:
    """The interface that holds one of these addresses, from ``ip -json address show``; never the loopback one."""
    wanted = {address for address in addresses if not _loopback(address)}
    for link in json.loads(listed or "[]"):
        held = {entry.get("local") for entry in link.get("addr_info", [])}
        if "LOOPBACK" not in link.get("flags", []) and held & wanted:
            return str(link["ifname"])
    return None


def route_of(listed: str) -> Optional[str]:
    """The interface of a route, from ``ip -json route get``."""
    routes = [entry.get("dev") for entry in json.loads(listed or "[]")]
    return next((str(name) for name in routes if name and name != "lo"), None)


def find_interface(run: Run, ip: str, address: str, peers: Iterable[str]) -> Optional[str]:
    """The interface on which a node meets its peers: the one with its address, else the one of the way to them.

    The node itself may find its name at 127.0.1.1, where the installers of Debian and Ubuntu put it, and an address may
    be one that a router translates: then the way to the other nodes tells.
    """
    _rc, listed, _err = run([ip, "-json", "address", "show"])
    found = interface_of(listed, _resolved(address))
    for peer in peers if found is None else ():
        for each in (each for each in _resolved(peer) if not _loopback(each)):
            rc, listed, _err = run([ip, "-json", "route", "get", each])
            found = route_of(listed) if rc == 0 else None
            if found is not None:
                return found
    return found


def _resolved(name: str) -> list[str]:
    try:
        return [str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def _loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


# --- the device files ---


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
        try:
            listed = "system.posix_acl_access" in os.listxattr(path)
        except OSError:
            listed = False
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        return cls(path, _user(found.st_uid), _group(found.st_gid), mode, found.st_uid, found.st_gid, listed)

    def opens_for(self, uid: int, gids: Iterable[int]) -> bool:
        """Whether the kernel lets this user open it: the first of owner, group and others that fits decides."""
        bits = int(self.mode, 8)
        if uid == 0 or self.listed:
            return True
        shift = 6 if uid == self.uid else 3 if self.gid in gids else 0
        return bits >> shift & 6 == 6

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
        file.group for file in files if file.gid != 0 and int(file.mode, 8) & _WIDE != _WIDE and int(file.mode, 8) & 0o060
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
    try:
        entry = pwd.getpwnam(user)
        uid, gids = entry.pw_uid, set(os.getgrouplist(user, entry.pw_gid))
    except KeyError:
        uid, gids = -1, set()
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


# --- the cards ---


@dataclass(frozen=True)
class CardModules:
    """Module ids of the cards that work, now or once they have reset, and those of them that a process has open."""

    operational: list[int]
    held: list[int]


def card_modules(sysfs: str = "/sys", proc: str = "/proc") -> Optional[CardModules]:
    """The modules of this node's cards; None before the driver is loaded."""
    names = {}
    for name in listing(sysfs, "class", "accel"):
        module = read(sysfs, "class", "accel", name, "device", "module_id")
        if name[5:].isdigit() and module is not None and module.isdigit():
            names[name] = (int(module), works(read(sysfs, "class", "accel", name, "device", "status") or ""))
    if not names:
        return None
    opened = _open_devices(proc)
    usable = {name: module for name, (module, usable) in names.items() if usable}
    return CardModules(sorted(usable.values()), sorted(module for name, module in usable.items() if name in opened))


def _open_devices(proc: str) -> set[str]:
    found = set()
    for pid in (name for name in listing(proc) if name.isdigit()):
        for handle in listing(proc, pid, "fd"):
            try:
                target = os.readlink(os.path.join(proc, pid, "fd", handle))
            except OSError:
                continue
            if target.startswith("/dev/accel/"):
                found.add(target.rpartition("/")[2])
    return found
