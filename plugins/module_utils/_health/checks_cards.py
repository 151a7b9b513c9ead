# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Checks of single cards: status, temperature, memory, PCIe link, throttling, firmware, leftovers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .._hl_smi.card import Card
from .actions import (
    CONFIGURE,
    CRITICAL,
    ERROR,
    FREE,
    INFO,
    REBOOT,
    RELOAD,
    RESET,
    RETRY,
    WARNING,
    WATCH,
)
from .boards import find
from .readings import NodeReading
from .verdicts import NODE_FAULT, USER_FAULT, Finding

OPERATIONAL = "Operational"
#: What is done about each status that is not Operational; what is not listed needs the driver loaded anew.
_STATUS_ACTIONS = {
    "In reset": RETRY,
    "In reset after device release": RETRY,
    "In device creation": RELOAD,
    "Needs reset": RESET,
    "Disabled": RELOAD,
}
#: Memory above the idle use that is somebody's; an idle card's own use differs by some MiB between releases.
KEPT_MIB = 1024
#: Fewer cards than this cannot say which version is the usual one.
MAJORITY_OF = 3
#: Firmware that is flashed; the rest is loaded by the driver.
_FLASHED = ("spi", "cpld")


def _name(card: Card) -> str:
    return f"accel{card.index}"


def status(reading: NodeReading) -> Iterator[Finding]:
    """The driver's own word on the card, which has to be exactly ``Operational``."""
    for card in reading.cards:
        if card.status is not None and card.status != OPERATIONAL:
            action = _STATUS_ACTIONS.get(card.status, RELOAD)
            said = f"the driver says {card.status!r} of {card.label}"
            yield Finding("card-status", _name(card), NODE_FAULT, CRITICAL, action, said)


def temperature(reading: NodeReading) -> Iterator[Finding]:
    """0 C is what a card shows that did not initialise."""
    for card in reading.cards:
        if card.temperature_c == 0 and card.status in (None, OPERATIONAL):
            said = f"{card.label} reports 0 C, as a card does that did not initialise"
            yield Finding("card-temperature", _name(card), NODE_FAULT, ERROR, RESET, said)


def uncorrected(reading: NodeReading) -> Iterator[Finding]:
    """Memory errors that were not corrected since the driver was loaded."""
    for card in reading.cards:
        if card.uncorrected:
            said = f"{card.label} counts {card.uncorrected} uncorrected memory errors"
            yield Finding("memory-uncorrected", _name(card), NODE_FAULT, CRITICAL, RESET, said)


def corrected(reading: NodeReading) -> Iterator[Finding]:
    """Corrected memory errors: worth a look, no reason to take a card away."""
    for card in reading.cards:
        if card.corrected:
            said = f"{card.label} counts {card.corrected} corrected memory errors"
            yield Finding("memory-corrected", _name(card), NODE_FAULT, INFO, WATCH, said)


def rows(reading: NodeReading) -> Iterator[Finding]:
    """Rows of memory that are replaced with the next reset."""
    for card in reading.cards:
        if card.rows_pending:
            said = f"rows of the memory of {card.label} wait to be replaced by a reset"
            yield Finding("memory-rows", _name(card), NODE_FAULT, ERROR, RESET, said)


def pcie(reading: NodeReading) -> Iterator[Finding]:
    """The link has to run at the width and generation that card and slot can do."""
    for card in reading.cards:
        for what, now, most in (
            ("width", card.pcie_width, card.pcie_width_max),
            ("generation", card.pcie_gen, card.pcie_gen_max),
        ):
            if now is not None and most is not None and now < most:
                said = f"the PCIe link of {card.label} has {what} {now} of {most}"
                yield Finding(f"pcie-{what}", _name(card), NODE_FAULT, ERROR, REBOOT, said)


def throttled(reading: NodeReading) -> Iterator[Finding]:
    """Slowed down for power or heat since the driver was loaded."""
    for card in reading.cards:
        for why, count in (("power", card.throttled_power), ("thermal", card.throttled_thermal)):
            if count:
                said = f"{card.label} was slowed down {count} times ({why})"
                yield Finding(f"throttled-{why}", _name(card), NODE_FAULT, WARNING, WATCH, said)


def leftover_process(reading: NodeReading) -> Iterator[Finding]:
    """A process that computes nothing and belongs to no unit holds a card: a user's fault, not the node's."""
    for process in reading.processes or ():
        card = reading.card(process.card)
        if not process.unit and card is not None and card.utilization == 0:
            said = f"process {process.pid} ({process.name}) holds {card.label} and computes nothing"
            yield Finding("leftover-process", _name(card), USER_FAULT, WARNING, FREE, said)


def memory_kept(reading: NodeReading) -> Iterator[Finding]:
    """Memory in use without any process: it was not freed."""
    if reading.processes is None:
        return
    held = {process.card for process in reading.processes}
    for card in reading.cards:
        board = find(card.name)
        if board is None or card.index in held or card.utilization != 0 or card.status not in (None, OPERATIONAL):
            continue
        kept = (card.memory_used_mib or 0) - board.idle_memory_mib
        if kept > KEPT_MIB:
            said = f"{card.label} has {kept} MiB in use and no process holds it"
            yield Finding("memory-kept", _name(card), NODE_FAULT, ERROR, RESET, said)


def firmware(reading: NodeReading) -> Iterator[Finding]:
    """Every card runs the firmware of the others."""
    for image in sorted({name for card in reading.cards for name in card.firmware}):
        seen = {card.index: card.firmware[image] for card in reading.cards if image in card.firmware}
        usual, count = Counter(seen.values()).most_common(1)[0]
        if len(seen) < MAJORITY_OF or count * 2 <= len(seen):
            continue
        for card in reading.cards:
            version = card.firmware.get(image)
            if version is not None and version != usual:
                flashed = image in _FLASHED
                said = f"{card.label} has {image} firmware {version} and the others {usual}"
                check = "firmware-flashed" if flashed else "firmware-loaded"
                action = CONFIGURE if flashed else RELOAD
                yield Finding(check, _name(card), NODE_FAULT, ERROR, action, said)
