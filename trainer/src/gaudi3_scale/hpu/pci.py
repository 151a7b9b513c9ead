"""The Gaudi cards that this machine has, as the kernel shows them: without torch, a driver or a tool."""

from __future__ import annotations

from pathlib import Path

SYSFS = Path("/sys")
VENDOR = "1da3"
GENERATIONS = {"1020": "gaudi2", "1021": "gaudi2", "1060": "gaudi3", "1063": "gaudi3"}
"""By the id of a card, as the vendor's library has them; what 1030, 1061 and 1062 name is not published."""
NOT_FOR_TRAINING = frozenset({"0001"})
"""Goya, the same vendor's inference card. Its other ids are Gaudis, of some of which only the number is public."""


def gaudi_cards() -> list[str]:
    """Addresses of the cards on the PCI bus; where the bus is not to be seen, names such as `accel0`."""
    return _cards(SYSFS / "bus" / "pci" / "devices") or _cards(SYSFS / "class" / "accel", "device")


def generation() -> str:
    """`gaudi3` or `gaudi2` by the id of the first card; empty without cards, or with ids that are not known."""
    for folder, below in ((SYSFS / "bus" / "pci" / "devices", ""), (SYSFS / "class" / "accel", "device")):
        for name in _cards(folder, below):
            return GENERATIONS.get(_id(folder / name / below / "device"), "")
    return ""


def iommu_domains() -> dict[str, str]:
    """The type of each card's IOMMU domain, such as `identity` or `DMA-FQ`; cards without a group are left out."""
    found = {}
    for folder, below in ((SYSFS / "bus" / "pci" / "devices", ""), (SYSFS / "class" / "accel", "device")):
        for name in _cards(folder, below):
            kind = shown(folder / name / below / "iommu_group" / "type")
            if kind:
                found[name] = kind
        if found:
            break
    return found


def _cards(folder: Path, below: str = "") -> list[str]:
    return [entry.name for entry in entries(folder) if _is_gaudi(entry / below)]


def _is_gaudi(device: Path) -> bool:
    return _id(device / "vendor") == VENDOR and _id(device / "device") not in NOT_FOR_TRAINING


def _id(attribute: Path) -> str:
    return shown(attribute).lower().removeprefix("0x")


def shown(path: Path) -> str:
    """What the kernel shows in a file; empty where it does not."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def entries(folder: Path) -> list[Path]:
    """What the kernel shows in a folder, in order; nothing where it does not."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
