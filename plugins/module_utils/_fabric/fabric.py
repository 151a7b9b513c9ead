# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which fabric carries collectives out of a host, read from sysfs.

Gaudi 2 and Gaudi 3 OAM cards have Ethernet ports of their own for it. On first-generation cloud instances those
do not leave the host and EFA does. The port layout of PCIe cards is not published: a host NIC goes first. Where the
driver runs and no card has a port device, as in a virtual machine, collectives between hosts go over TCP.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._cards import pci
from .._cards.accel import ExternalPort, external_ports
from .._cards.pci import PciCard, listing

KINDS = ("gaudi", "host_nic", "host_tcp", "efa", "none")
_PCIE_CARDS = ("HL-288", "HL-338")


@dataclass(frozen=True)
class RdmaDevice:
    """An RDMA device and what it belongs to: gaudi, efa, host_nic or other."""

    name: str
    driver: str | None
    kind: str


@dataclass(frozen=True)
class Choice:
    """The fabric that applies, all that could, and why this one."""

    kind: str
    candidates: list[str]
    reason: str


def rdma_devices(sysfs: str = "/sys") -> list[RdmaDevice]:
    """The RDMA devices of this host."""
    folder = os.path.join(sysfs, "class", "infiniband")
    devices = []
    for name in listing(folder):
        link = os.path.join(folder, name, "device", "driver")
        driver = os.path.basename(os.path.realpath(link)) if os.path.islink(link) else None
        devices.append(RdmaDevice(name, driver, _kind(name, driver)))
    return devices


def _kind(name: str, driver: str | None) -> str:
    if name.startswith(("hbl_", "hlib_")) or (driver or "").startswith(("habanalabs", "hbl")):
        return "gaudi"
    if driver is None:
        return "other"  # made by software, such as rxe
    return "efa" if driver == "efa" else "host_nic"


def choose(
    cards: list[PciCard], devices: list[RdmaDevice], ports: Sequence[ExternalPort] = (), driver_loaded: bool = True
) -> Choice:
    """Decide which fabric carries scale-out, in the order in which the vendor's library would choose.

    Port devices appear with the driver: without it, the cards are taken to have them.
    """
    kinds = {device.kind for device in devices}
    hosts = [kind for kind in ("efa", "host_nic") if kind in kinds]
    if not cards:
        return Choice("none", [], "this host has no Gaudi card")
    wired = bool(ports) or not driver_loaded
    candidates = [*(["gaudi"] if wired else []), *hosts]
    if "efa" in kinds:
        return Choice("efa", candidates, "this is an instance with EFA, which Gaudi's own ports do not leave")
    if "host_nic" in kinds and all(card.product in _PCIE_CARDS for card in cards):
        return Choice("host_nic", candidates, "the port layout of PCIe cards is not published, and there is a host NIC")
    if ports:
        return Choice("gaudi", candidates, "the cards have network ports of their own")
    if wired:
        return Choice("gaudi", candidates, "the cards should have network ports, which appear with the driver")
    if "host_nic" in kinds:
        return Choice("host_nic", candidates, "no card has a network port, and there is a host NIC with verbs")
    return Choice("host_tcp", ["host_tcp"], "no card has a network port and there is no host NIC with verbs")


def facts(sysfs: str = "/sys") -> dict[str, Any]:
    """The fabric of this host, with its RDMA devices and external ports, as Ansible's facts have it."""
    cards = pci.cards(sysfs)
    devices = rdma_devices(sysfs)
    ports = external_ports([card.bus_id for card in cards], sysfs)
    return {
        **asdict(choose(cards, devices, ports, driver_loaded="habanalabs" in pci.modules(sysfs))),
        "generation": pci.generation_of(cards),
        "rdma_devices": [asdict(device) for device in devices],
        "ports": [asdict(port) for port in ports],
    }
