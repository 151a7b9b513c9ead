"""What the PCI bus shows of a card, driver or not."""

from __future__ import annotations

import os

from . import board, conditions, node, paths, pci_config, strictness, tree
from .tree import Link, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tree import Entry

BUS = "/sys/bus/pci"
DEVICES = BUS + "/devices"
DRIVERS = BUS + "/drivers"
IOMMU = "/sys/kernel/iommu_groups"


def entries(simulated: node.Node, card: node.Card) -> dict[str, Entry]:
    """Every file of one card that does not need the driver."""
    folder = f"{DEVICES}/{card.bus_id}"
    texts = _texts(simulated, card)
    files: dict[str, Entry] = {f"{folder}/{name}": Text(text + "\n") for name, text in texts.items()}
    width = (board.PCIE_WIDTH, simulated.pcie_width(card))
    kind = simulated.board
    numbers = (int(board.PCI_VENDOR, 16), int(kind.pci_device, 16), int(board.PCI_REVISION, 16))
    generation = (kind.pcie_generation, conditions.pcie_generation(simulated, card))
    space = pci_config.configuration(*numbers, _bus(card), generation, width, simulated.driver_up)
    files[f"{folder}/config"] = Text(space, 0o644)
    if simulated.driver_up:
        files[f"{folder}/driver"] = Link(f"../../drivers/{node.DRIVER}")
        files[f"{DRIVERS}/{node.DRIVER}/{card.bus_id}"] = Link(f"../../devices/{card.bus_id}")
    if simulated.profile.iommu and strictness.is_on("iommu-group") and shows_iommu():
        files.update(_iommu(simulated, card))
    return files


def shows_iommu() -> bool:
    """Whether there is a place for the groups: /sys takes no new folder where the kernel has no IOMMU support."""
    return tree.nothing_is_real() or os.path.isdir(paths.at(IOMMU))


def _bus(card: node.Card) -> int:
    return int(card.bus_id[5:7], 16)


def _iommu(simulated: node.Node, card: node.Card) -> dict[str, Entry]:
    """The card's IOMMU group: translated unless the kernel was started with ``iommu=pt``."""
    group = f"{IOMMU}/{_bus(card)}"
    return {
        f"{DEVICES}/{card.bus_id}/iommu_group": Link(f"../../../../kernel/iommu_groups/{_bus(card)}"),
        f"{group}/type": Text("identity\n" if simulated.passthrough else "DMA-FQ\n", 0o644),
        f"{group}/devices/{card.bus_id}": Link(f"../../../../bus/pci/devices/{card.bus_id}"),
    }


def _texts(simulated: node.Node, card: node.Card) -> dict[str, str]:
    kind = simulated.board
    ids = f"{board.PCI_VENDOR.upper()}:{kind.pci_device}"
    modalias = (
        f"pci:v0000{board.PCI_VENDOR.upper()}d0000{kind.pci_device}sv0000{board.PCI_VENDOR.upper()}"
        f"sd0000{kind.pci_device}bc{board.PCI_CLASS[2:4]}sc00i00"
    )
    uevent = [f"DRIVER={node.DRIVER}"] if simulated.driver_up else []
    uevent += [
        f"PCI_CLASS={board.PCI_CLASS[2:]}",
        f"PCI_ID={ids}",
        f"PCI_SUBSYS_ID={ids}",
        f"PCI_SLOT_NAME={card.bus_id}",
        f"MODALIAS={modalias}",
    ]
    generation = conditions.pcie_generation(simulated, card)
    low, high = _processors(card.numa_node)
    return {
        "vendor": f"0x{board.PCI_VENDOR}",
        "device": f"0x{kind.pci_device}",
        "class": board.PCI_CLASS,
        "revision": f"0x{board.PCI_REVISION}",
        "subsystem_vendor": f"0x{board.PCI_VENDOR}",
        "subsystem_device": f"0x{kind.pci_device}",
        "numa_node": str(card.numa_node),
        "local_cpulist": str(low) if low == high else f"{low}-{high}",
        "local_cpus": _mask(low, high),
        "max_link_speed": _speed(kind.pcie_generation),
        "current_link_speed": _speed(generation),
        "max_link_width": str(board.PCIE_WIDTH),
        "current_link_width": str(simulated.pcie_width(card)),
        "enable": str(int(simulated.driver_up)),
        "irq": "0",
        "resource": "\n".join(
            f"0x{start:016x} 0x{end:016x} 0x{flags:016x}" for start, end, flags in pci_config.regions(_bus(card))
        ),
        "modalias": modalias,
        "uevent": "\n".join(uevent),
    }


def _speed(generation: int) -> str:
    """Speed of a lane as the kernel prints it."""
    return f"{float(conditions.pcie_speed(generation)[: -len('GT/s')]):.1f} GT/s PCIe"


def _processors(socket: int) -> tuple[int, int]:
    """First and last processor of a socket: half of those that this machine has, so that one can bind to them."""
    count = os.cpu_count() or 1
    half = count // 2
    return (half, count - 1) if socket else (0, max(half - 1, 0))


def _mask(low: int, high: int) -> str:
    """The processors as the kernel prints a mask: groups of 32 bits."""
    bits = (1 << (high + 1)) - (1 << low)
    words: list[str] = []
    while bits or not words:
        words.append(f"{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))
