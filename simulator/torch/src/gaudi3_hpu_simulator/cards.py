"""How many cards there are, and how large.

On a node of gaudi3-simulator they are the devices that its driver shows. Elsewhere they are 8, as in a Gaudi 3 server,
or as many as GAUDI3_HPU_SIMULATOR_DEVICES says.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

DEVICES = "GAUDI3_HPU_SIMULATOR_DEVICES"
MEMORY = "GAUDI3_HPU_SIMULATOR_HBM"
NODE_STATE = Path("/var/lib/gaudi3-simulator/state.json")
DEVICE_FILES = Path("/dev/accel")
SERVER_CARDS = 8
MAX_CARDS = 64
# Gaudi 3 has 128 GB of HBM2e; hl-smi shows 131072 MiB.
CARD_MEMORY = 128 * 2**30


@dataclass(frozen=True)
class Cards:
    """The cards of this machine."""

    count: int
    memory: int
    """Bytes of each."""
    device_files: tuple[str, ...] = ()
    absent: str = ""
    """Why there are none."""


def find() -> Cards:
    """The cards to simulate; ValueError when a setting is no sensible number."""
    memory = _number(MEMORY, CARD_MEMORY, 0, 2**62)
    if NODE_STATE.exists():
        files = _device_files()
        absent = f"no device in {DEVICE_FILES}, the node's driver (habanalabs) is not loaded"
        return Cards(len(files), memory, tuple(files), absent)
    return Cards(_number(DEVICES, SERVER_CARDS, 0, MAX_CARDS), memory, absent=f"{DEVICES} is 0")


def _device_files() -> list[str]:
    found: dict[int, str] = {}
    if DEVICE_FILES.is_dir():
        for path in DEVICE_FILES.iterdir():
            if match := re.fullmatch(r"accel(\d+)", path.name):
                found[int(match[1])] = str(path)
    return [found[index] for index in sorted(found)]


def _number(name: str, default: int, low: int, high: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{name} is {text!r}, but it has to be a whole number from {low} to {high}.")
    return int(text)
