# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Who listens on a TCP port of this host: the processes, as the kernel shows them, and the unit that runs each."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from .address import single_ip

_LISTEN = "0A"
_CONTAINER = re.compile(r"[0-9a-f]{12,64}")
_UNIT = re.compile(r"([^/]+\.(?:service|scope))")


@dataclass(frozen=True)
class Listener:
    """A process that listens. One whose process cannot be found has the number 0 and neither name nor group."""

    address: str
    port: int
    pid: int = 0
    name: str = ""
    group: str = ""
    """Its control group, such as ``/system.slice/prometheus.service``."""

    @property
    def unit(self) -> str:
        """The unit that it belongs to; empty without one."""
        found: list[str] = _UNIT.findall(self.group)
        return found[-1] if found else ""

    def belongs_to(self, owners: tuple[str, ...]) -> bool:
        """Whether its control group is one of these units, or that of a container with one of these identifiers."""
        parts = self.group.split("/")
        containers = [owner for owner in owners if _CONTAINER.fullmatch(owner)]
        return any(owner and owner in parts for owner in owners) or any(each in self.group for each in containers)

    def __str__(self) -> str:
        if not self.pid:
            return "a process that cannot be seen"
        return f"{self.name} (process {self.pid}{', ' + self.unit if self.unit else ''})"


def on_port(port: int, address: str = "", proc: str = "/proc") -> list[Listener]:
    """Who listens on a port where a caller of ``address`` would reach it, or where it keeps others from listening.

    An address that is no IP address, such as a name, means every address of the host.
    """
    sockets = {inode: where for inode, where in _sockets(port, proc) if _meet(where, single_ip(address))}
    if not sockets:
        return []
    found = [
        Listener(sockets[inode], port, pid, _first_line(f"{proc}/{pid}/comm"), _group(f"{proc}/{pid}/cgroup"))
        for pid, inode in _holders(set(sockets), proc)
    ]
    seen = {each.address for each in found}
    return found + [Listener(where, port) for where in dict.fromkeys(sockets.values()) if where not in seen]


def _sockets(port: int, proc: str) -> Iterator[tuple[str, str]]:
    """Inode and address of every listening socket of the port."""
    for table in ("tcp", "tcp6"):
        for line in _lines(f"{proc}/net/{table}")[1:]:
            cells = line.split()
            if len(cells) > 9 and cells[3] == _LISTEN:
                where, number = cells[1].rsplit(":", 1)
                if int(number, 16) == port:
                    yield cells[9], _address(where)


def _address(text: str) -> str:
    """An address as the kernel's table has it: words of four bytes in the order of the processor."""
    raw = b"".join(int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8))
    return str(ipaddress.ip_address(raw))


def _meet(listening: str, wanted: str | None) -> bool:
    """Whether a socket at the one address answers at the other, or stands in its way."""
    if wanted is None:
        return True
    there, here = ipaddress.ip_address(listening), ipaddress.ip_address(wanted)
    mapped = getattr(there, "ipv4_mapped", None) or there
    if there.is_unspecified:
        # One of IPv6 takes the callers of IPv4, too, unless it was told not to.
        return there.version == 6 or here.version == 4
    return bool(mapped == here)


def _holders(inodes: set[str], proc: str) -> Iterator[tuple[int, str]]:
    """Process and inode of each of these sockets; a socket that several processes share is given once for each."""
    for name in sorted(os.listdir(proc)):
        if not name.isdigit():
            continue
        held = set()
        try:
            for descriptor in os.listdir(f"{proc}/{name}/fd"):
                target = os.readlink(f"{proc}/{name}/fd/{descriptor}")
                if target.startswith("socket:[") and target[8:-1] in inodes:
                    held.add(target[8:-1])
        except OSError:  # it has ended, or it is a thread of the kernel
            pass
        for inode in sorted(held):
            yield int(name), inode


def _group(path: str) -> str:
    """The control group out of a process's file: that of version 2, or systemd's own of version 1."""
    groups = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in _lines(path) if line.count(":") >= 2}
    return groups.get("name=systemd") or groups.get("") or ""


def _first_line(path: str) -> str:
    return next(iter(_lines(path)), "")


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
