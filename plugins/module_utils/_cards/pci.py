# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Gaudi cards and drivers as the kernel shows them in sysfs: no driver, no tool and no lspci needed."""

from __future__ import annotations

import os
from dataclasses import dataclass

VENDOR = "1da3"


@dataclass(frozen=True)
class Product:
    """What a PCI device id stands for; both None where the id is known and what it names is not."""

    name: str | None
    generation: str | None


# Ids accepted by the vendor's own library. What 1030, 1061 and 1062 name is not published.
PRODUCTS = {
    "1000": Product("HL-205", "gaudi"),
    "1010": Product("HL-205", "gaudi"),
    "1001": Product("HL-2000M", "gaudi"),
    "1011": Product("HL-2000M", "gaudi"),
    "1020": Product("HL-225", "gaudi2"),
    "1021": Product("HL-288", "gaudi2"),
    "1030": Product(None, None),
    "1060": Product("HL-325", "gaudi3"),
    "1061": Product(None, None),
    "1062": Product(None, None),
    "1063": Product("HL-338", "gaudi3"),
}
UNKNOWN = Product(None, None)


@dataclass(frozen=True)
class PciCard:
    """A Gaudi card on the PCI bus; ``iommu`` is the type of its IOMMU group, None without one."""

    bus_id: str
    device_id: str
    product: str | None
    generation: str | None
    numa_node: int | None
    iommu: str | None = None


def read(*parts: str) -> str | None:
    """A sysfs attribute without its line end, or None where there is none."""
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as attribute:
            return attribute.read().strip()
    except OSError:
        return None


def listing(*parts: str) -> list[str]:
    """The sorted names in a folder, none where it does not exist."""
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []


def cards(sysfs: str = "/sys") -> list[PciCard]:
    """Every device of Gaudi's PCI vendor, by address."""
    found = []
    devices = os.path.join(sysfs, "bus", "pci", "devices")
    for bus_id in listing(devices):
        if _hex_id(read(devices, bus_id, "vendor")) != VENDOR:
            continue
        device_id = _hex_id(read(devices, bus_id, "device"))
        product = PRODUCTS.get(device_id, UNKNOWN)
        found.append(
            PciCard(
                bus_id,
                device_id,
                product.name,
                product.generation,
                _numa(read(devices, bus_id, "numa_node")),
                read(devices, bus_id, "iommu_group", "type") or None,
            )
        )
    return found


def generation_of(found: list[PciCard]) -> str | None:
    """The generation all cards share, None where they differ, where one is unknown, or without cards."""
    generations = {card.generation for card in found}
    return generations.pop() if len(generations) == 1 else None


def modules(sysfs: str = "/sys") -> list[str]:
    """The loaded kernel modules of the driver. /sys/module also holds where /proc/modules does not exist."""
    return [name for name in listing(sysfs, "module") if name.startswith("habanalabs")]


def driver_version(sysfs: str = "/sys") -> str | None:
    """The loaded driver's version."""
    return read(sysfs, "module", "habanalabs", "version") or None


def _hex_id(value: str | None) -> str:
    return (value or "").lower().replace("0x", "", 1)


def _numa(value: str | None) -> int | None:
    """The kernel gives -1 where it knows no node."""
    return int(value) if value and value.isdigit() else None
