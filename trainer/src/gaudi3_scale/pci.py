"""The Gaudi cards that this machine has, as the kernel shows them: without torch, a driver or a tool."""

from __future__ import annotations

from pathlib import Path

SYSFS = Path("/sys")
VENDOR = "1da3"
NOT_FOR_TRAINING = frozenset({"0001"})
"""Goya, the same vendor's inference card. Its other ids are Gaudis, of some of which only the number is public."""


def gaudi_cards() -> list[str]:
    """Addresses of the cards on the PCI bus; where the bus is not to be seen, names such as `accel0`."""
    return _cards(SYSFS / "bus" / "pci" / "devices") or _cards(SYSFS / "class" / "accel", "device")


def _cards(folder: Path, below: str = "") -> list[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [entry.name for entry in entries if _is_gaudi(entry / below)]


def _is_gaudi(device: Path) -> bool:
    return _id(device / "vendor") == VENDOR and _id(device / "device") not in NOT_FOR_TRAINING


def _id(attribute: Path) -> str:
    try:
        return attribute.read_text(encoding="ascii", errors="replace").strip().lower().removeprefix("0x")
    except OSError:
        return ""
