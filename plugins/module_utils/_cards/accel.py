# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Accelerator devices as the loaded driver shows them, who holds them, and their external ports."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .pci import listing, read

OPERATIONAL = "Operational"
#: States that a device leaves by itself.
_PASSING = ("In reset", "In device creation", "In reset after device release")
_UP = 0x1
#: The unit in a line of /proc/PID/cgroup.
_UNIT = re.compile(r"/([^/\n]+\.service)(?:/|$)", re.M)


@dataclass(frozen=True)
class Device:
    """One accelerator: its accel name, the driver's word on it, its preboot (SPI) firmware, its PCI address."""

    name: str
    status: str
    preboot: str | None
    bus_id: str = ""


@dataclass(frozen=True)
class User:
    """A process that holds a device open."""

    pid: int
    command: str
    #: Whether it holds control devices alone, as what reads the cards does; what computes holds a card.
    control: bool = False
    #: Unit that it belongs to, empty where it belongs to none.
    unit: str = ""
    #: Names of the device files that it has open.
    held: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.pid} ({self.command}{', control devices only' if self.control else ''})"


@dataclass(frozen=True)
class ExternalPort:
    """The network device of a card's external port."""

    name: str
    bus_id: str
    port: int | None
    mac: str | None
    state: str | None


def devices(sysfs: str = "/sys") -> list[Device]:
    """Every device of the accel class that has a status."""
    root = os.path.join(sysfs, "class", "accel")
    names = sorted((name for name in listing(root) if name[5:].isdigit()), key=lambda name: int(name[5:]))
    found = []
    for name in names:
        status = read(root, name, "device", "status")
        if status is not None:
            preboot, address = (read(root, name, "device", each) for each in ("preboot_btl_ver", "pci_addr"))
            found.append(Device(name, status, preboot, address or ""))
    return found


def users(proc: str = "/proc") -> list[User]:
    """Processes with an open file under /dev/accel. Needs root to see those of others."""
    found = []
    for pid in listing(proc):
        if not pid.isdigit():
            continue
        folder = os.path.join(proc, pid, "fd")
        targets = [_target(os.path.join(folder, name)) for name in listing(folder)]
        held = frozenset(os.path.basename(target) for target in targets if target.startswith("/dev/accel/"))
        if held:
            control = all(device.startswith("accel_control") for device in held)
            unit = _UNIT.search(read(proc, pid, "cgroup") or "")
            found.append(User(int(pid), read(proc, pid, "comm") or "?", control, unit[1] if unit else "", held))
    return sorted(found, key=lambda user: user.pid)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def works(status: str) -> bool:
    """Whether a card with this status can be used, now or once it has reset."""
    return status == OPERATIONAL or status in _PASSING


def waiting(found: list[Device], cards: int) -> bool:
    """Whether time may still help: a card is missing, or in a state that passes."""
    return len(found) < cards or any(device.status in _PASSING for device in found)


def trouble(found: list[Device], cards: int) -> str:
    """One sentence on cards that do not work; empty where all do."""
    bad = [f"{device.name} {device.status}" for device in found if device.status != OPERATIONAL]
    if len(found) < cards:
        bad.append(f"{cards - len(found)} on the PCI bus without a device")
    if not bad:
        return ""
    good = sum(device.status == OPERATIONAL for device in found)
    return f"{good} of {cards} cards are {OPERATIONAL} ({', '.join(bad)}); see dmesg, then reboot or service the node."


def external_ports(bus_ids: list[str], sysfs: str = "/sys") -> list[ExternalPort]:
    """The network devices below the cards: their external ports, once the driver is loaded."""
    ports = []
    for bus_id in bus_ids:
        folder = _ports_folder(bus_id, sysfs)
        for name in listing(folder):
            number = read(folder, name, "dev_port") or ""
            ports.append(
                ExternalPort(
                    name,
                    bus_id,
                    int(number) if number.isdigit() else None,
                    (read(folder, name, "address") or "").lower() or None,
                    read(folder, name, "operstate"),
                )
            )
    return ports


def external_ports_down(bus_ids: list[str], sysfs: str = "/sys") -> bool:
    """Whether the driver has made external ports and none of them was brought up since."""
    ports = external_ports(bus_ids, sysfs)
    return bool(ports) and not any(_brought_up(port, sysfs) for port in ports)


def _ports_folder(bus_id: str, sysfs: str) -> str:
    return os.path.join(sysfs, "bus", "pci", "devices", bus_id, "net")


def _brought_up(port: ExternalPort, sysfs: str) -> bool:
    """By the administrative flag, which a missing cable does not change; without one, by the state."""
    flags = read(_ports_folder(port.bus_id, sysfs), port.name, "flags")
    return port.state != "down" if flags is None else bool(int(flags, 16) & _UP)
