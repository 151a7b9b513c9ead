# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a training job needs to know of its node: the interface on which nodes meet, and the modules of its cards."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional

from .._cards.accel import users, works
from .._cards.pci import listing, read
from .._release.versions import version_of

#: Runs a program: argv to exit status, output, errors.
Run = Callable[[list[str]], tuple[int, str, str]]


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


# --- the driver and its cards ---


def driver_version(sysfs: str = "/sys") -> Optional[str]:
    """The ``x.y.z`` of the driver that is loaded; None before it is."""
    return version_of(read(sysfs, "module", "habanalabs", "version"))


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
    opened = {device for user in users(proc) for device in user.held}
    usable = {name: module for name, (module, usable) in names.items() if usable}
    return CardModules(sorted(usable.values()), sorted(module for name, module in usable.items() if name in opened))
