"""The machine's cards: how many there are, how large, and the files that say who holds them.

On a node of gaudi3-simulator they are the devices that its driver shows. Elsewhere they are 8, as in a Gaudi 3 server,
or as many as GAUDI3_HPU_SIMULATOR_DEVICES says; the module id of each is then its index.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from gaudi3_hpu_simulator import strictness

DEVICES = "GAUDI3_HPU_SIMULATOR_DEVICES"
MEMORY = "GAUDI3_HPU_SIMULATOR_HBM"
FOLDER = "GAUDI3_HPU_SIMULATOR_CARDS"
RESET = "GAUDI3_HPU_SIMULATOR_RESET"
NODE_STATE = "var/lib/gaudi3-simulator/state.json"
NODE_FOLDER = "run/gaudi3-simulator/cards"
# A fault of the whole node: where this file is, it stands for the status of every card, and no card can be acquired.
NODE_REFUSAL = "run/gaudi3-simulator/acquire-status"
DEVICE_FILES = "dev/accel"
SYSFS = "sys/class/accel"
SERVER_CARDS = 8
MAX_CARDS = 64
# hl-smi shows 131072 MiB. A log of release 1.18 on a Gaudi 3 has dramSize=136465870848: what programs may have of them.
HBM = 128 * 2**30
CARD_MEMORY = 136465870848
# Nobody has published how long a card resets after its holder's death.
RESET_SECONDS = 10


@dataclass(frozen=True)
class Card:
    """One card, and where its state is read and written."""

    index: int
    module: int
    file: str
    """Who holds it, and how many bytes: csrc/cards.h has the layout."""
    device_file: str = ""
    status_file: str = ""


@dataclass(frozen=True)
class Cards:
    """The cards of this machine."""

    cards: tuple[Card, ...]
    memory: int
    """Bytes of each."""
    absent: str
    """Why there are none."""
    folder: str = ""
    """Where the first user of a card makes its file; empty on a node, whose driver makes it."""
    reset_seconds: int = RESET_SECONDS

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.cards)


def on_node() -> bool:
    """Whether this machine is a node of gaudi3-simulator."""
    return (_root() / NODE_STATE).exists()


def find() -> Cards:
    """The cards to simulate; ValueError when a setting is no sensible number."""
    memory = _number(MEMORY, CARD_MEMORY if strictness.is_on("card-memory-is-drams") else HBM, 2**62)
    reset = _number(RESET, RESET_SECONDS, 3600)
    if on_node():
        absent = f"no device in /{DEVICE_FILES}, the node's driver (habanalabs) is not loaded"
        return Cards(tuple(_of_node()), memory, absent, reset_seconds=reset)
    folder = os.environ.get(FOLDER) or f"/tmp/gaudi3-hpu-simulator-{os.geteuid()}"
    count = _number(DEVICES, SERVER_CARDS, MAX_CARDS)
    cards = tuple(Card(index, index, f"{folder}/accel{index}") for index in range(count))
    return Cards(cards, memory, f"{DEVICES} is 0", folder, reset)


def _of_node() -> list[Card]:
    root = _root()
    found: list[Card] = []
    refusal = root / NODE_REFUSAL
    if (root / DEVICE_FILES).is_dir():
        for path in (root / DEVICE_FILES).iterdir():
            if match := re.fullmatch(r"accel(\d+)", path.name):
                index = int(match[1])
                sysfs = root / SYSFS / path.name / "device"
                found.append(
                    Card(
                        index,
                        _module(sysfs / "module_id", index),
                        str(root / NODE_FOLDER / path.name),
                        str(path),
                        str(refusal if refusal.exists() else sysfs / "status"),
                    )
                )
    return sorted(found, key=lambda card: card.index)


def _module(path: Path, index: int) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return index


def _root() -> Path:
    """What stands for `/`; tests of a node set it, as for the node's own tools."""
    return Path(os.environ.get("GAUDI3_SIMULATOR_ROOT") or "/")


def _number(name: str, default: int, high: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdigit() or int(text) > high:
        raise ValueError(f"{name} is {text!r}, but it has to be a whole number from 0 to {high}.")
    return int(text)
