# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The grammar of driver events' names: UNIT_PLACE_CLASS, such as ``MME0_DIE0_HD0_DERR``.

The parts (units, places, classes) are facts of the public driver source; the wordings and actions are this project's.
The driver's own table asks for a hard reset after double memory errors and for none after the ``SEI`` class. What it
asks for after ``SPI`` and ``ECO`` is not known here, so those are warnings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .actions import ERROR, INFO, RESET, WARNING, WATCH

#: ``Received H/W interrupt N ["NAME"]`` of one generation of the driver, ``NAME: text`` of the next.
EVENT_NAME = re.compile(
    r"Received H/W interrupt \d+,? *\[?\"(?P<quoted>\w+)\"\]?"
    r"|^(?P<plain>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?::|$)"
)

# What each unit is, where that is public.
UNITS = {
    "ARC_FARM": "scheduling processors",
    "CPU": "the card's processor",
    "CS": "command submission",
    "D2D_MAC": "the link between the dies (MAC)",
    "D2D_PHY": "the link between the dies (PHY)",
    "DCH": "",
    "DEC": "the decoder",
    "DRTR": "",
    "ECON": "",
    "EDMA": "the engine DMA",
    "EDUP": "",
    "GRTR": "",
    "HBM": "high-bandwidth memory",
    "HFT": "",
    "HIF": "",
    "HMMU": "the memory management unit of HBM",
    "MC": "the memory controller",
    "MME": "the matrix engine",
    "NCH": "",
    "NCHL": "",
    "NIC": "the network interface",
    "NRTR": "",
    "PARC": "",
    "PCIE": "the PCIe interface",
    "PDMA": "the PCIe DMA",
    "PLL": "the clock generator",
    "PMMU": "the memory management unit of PCIe",
    "PSOC": "the peripheral system",
    "RFT": "",
    "ROT": "the rotator",
    "RRTR": "",
    "SOB": "the sync objects",
    "STLB": "",
    "TPC": "the tensor processor",
    "TS": "",
    "VM": "",
}


@dataclass(frozen=True)
class Class:
    """What the last part of a name means."""

    key: str
    wording: str
    severity: str
    action: str


CLASSES = {
    "SERR": Class("memory-error-single", "a memory error of one bit, corrected", INFO, WATCH),
    "DERR": Class("memory-error-double", "a memory error of two bits, not corrected", ERROR, RESET),
    "SEI": Class("system-error", "a system error; the driver needs no reset", WARNING, WATCH),
    "SPI": Class("peripheral-interrupt", "an interrupt of the peripheral system", WARNING, WATCH),
    "ECO": Class("eco-event", "an event of the class ECO", WARNING, WATCH),
}
_PLACE = re.compile(r"HD\d+|DIE\d+|SHARED|PSOC|QUAD\d+|DCORE\d+")


@dataclass(frozen=True)
class Meaning:
    """An event's name, taken apart."""

    name: str
    unit: str
    location: str
    key: str
    wording: str
    severity: str
    action: str


def describe(name: str) -> Meaning | None:
    """The meaning of an event's name, or None where the grammar does not have it."""
    parts = name.upper().split("_")
    kinds = [part for part in parts if part in CLASSES]
    unit, length = _unit(parts)
    if not unit or not kinds:
        return None
    location = " ".join(part for part in parts[length:] if _PLACE.fullmatch(part))
    kind = CLASSES[kinds[-1]]
    known = UNITS[re.sub(r"\d+$", "", unit)]
    spot = f"{unit}{' ' + location if location else ''}"
    wording = f"{kind.wording}, in {known} ({spot})" if known else f"{kind.wording}, in unit {spot}"
    return Meaning(name, unit, location, kind.key, wording, kind.severity, kind.action)


def _unit(parts: list[str]) -> tuple[str, int]:
    """The unit with its number, and of how many parts it is; the longest that is known."""
    for length in (2, 1):
        unit = "_".join(parts[:length])
        if len(parts) >= length and re.sub(r"\d+$", "", unit) in UNITS:
            return unit, length
    return "", 0
