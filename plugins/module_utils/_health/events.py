# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The dictionary of driver events: a line of the kernel log becomes wording, severity, action and runbook.

Two kinds of lines are read. A line with an event's name is taken apart by the grammar in ``event_names``. Any other
line of the driver is looked up in ``LINES``. A line of the driver that neither knows is an "unknown event": it is never
dropped. Sources of the texts: public transcripts and the public driver source, as ``docs/health.md`` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .actions import CONFIGURE, CRITICAL, ERROR, INFO, NONE, REBOOT, RELOAD, REPLACE, RETRY, WARNING, WATCH
from .event_names import EVENT_NAME, describe

NODE = "node"
UNKNOWN = "unknown-event"


@dataclass(frozen=True)
class Event:
    """One line of the kernel log that concerns the cards.

    ``key`` names the kind of event, ``component`` what it concerns: a PCI address, ``accelN``, or ``node``.
    ``at_s`` is the time in seconds since the boot, None where the line has none.
    """

    key: str
    component: str
    wording: str
    severity: str
    action: str
    line: str
    at_s: float | None = None

    @property
    def runbook(self) -> str:
        """Anchor of the event's section in docs/health.md."""
        return f"docs/health.md#{self.key}"


@dataclass(frozen=True)
class Line:
    """What a text of the driver means."""

    key: str
    pattern: re.Pattern[str]
    wording: str
    severity: str
    action: str


def _line(key: str, pattern: str, wording: str, severity: str = INFO, action: str = NONE) -> Line:
    return Line(key, re.compile(pattern), wording, severity, action)


# The first that fits counts.
LINES = (
    _line("normal-start", r"loading driver, version", "the driver's module is loaded"),
    _line("normal-start", r"habanalabs device found \[", "the driver finds the card"),
    _line(
        "normal-start", r"Loading secured firmware|preboot full|boot-fit version|^Linux version", "firmware is loaded"
    ),
    _line("normal-start", r"Successfully (loaded firmware|added device)", "the card is ready"),
    _line("normal-start", r"Found \S+ device with \d+GB|add sensors information|IB device registered", "it comes up"),
    _line("normal-stop", r"driver removed", "the driver's module is unloaded"),
    _line("reset-begins", r"Going to reset device", "the card is reset", WARNING, WATCH),
    _line("reset-ends", r"Successfully finished resetting", "the card's reset has ended", INFO, WATCH),
    _line("reset-failed", r"Failed to reset! Device is NOT usable", "the card's reset failed", CRITICAL, RELOAD),
    _line("heartbeat-lost", r"heartbeat failed", "the card's firmware does not answer", CRITICAL, RELOAD),
    _line(
        "processor-silent",
        r"Failed to communicate with Device CPU|failed to initialize CPU H/W queues",
        "the card's processor does not answer, not even while the driver is loaded",
        CRITICAL,
        REPLACE,
    ),
    _line(
        "firmware-file-missing",
        r"Firmware file .* is not found|Direct firmware load for .* failed",
        "the firmware's file is not on the node",
        CRITICAL,
        CONFIGURE,
    ),
    _line(
        "initialisation-failed",
        r"Device \S+ is NOT usable|failed to initialize the H/W",
        "the card did not start",
        CRITICAL,
        RELOAD,
    ),
    _line("mac-timeout", r"Timeout while MAC channel \d+ reset", "a port's MAC does not reset", ERROR, RELOAD),
    _line(
        "no-rdma-device",
        r"failed to find matching Habana IB device|Unknown symbol ib_",
        "the RDMA module did not load",
        ERROR,
        CONFIGURE,
    ),
    _line(
        "module-option-unknown",
        r"unknown parameter '[^']*' ignored",
        "an option of the module is not known",
        WARNING,
        CONFIGURE,
    ),
    _line(
        "pcie-uncorrected",
        r"PCIe Bus Error: severity=(Uncorrect|Fatal)\w*",
        "the PCIe link reports an error that was not corrected",
        CRITICAL,
        REBOOT,
    ),
    _line(
        "pcie-corrected",
        r"PCIe Bus Error: severity=Correct\w*",
        "the PCIe link reports an error that was corrected",
        WARNING,
        WATCH,
    ),
    _line("memory-error", r"ECC error detected", "a memory error, without the event's name", ERROR, RETRY),
)

# Lines of the kernel that name no driver.
KERNEL_LINES = (
    _line(
        "page-table",
        r"^(?:\S+: )?Corrupted page table at address|^Bad pagetable:",
        "page tables are damaged, as under an IOMMU that translates the cards' addresses",
        CRITICAL,
        CONFIGURE,
    ),
    _line(
        "module-rejected",
        r"Loading of module with unavailable key is rejected",
        "the kernel takes signed modules only (Secure Boot)",
        ERROR,
        CONFIGURE,
    ),
)

_STAMP = re.compile(r"^(?:<\d+>)?\[?\s*(\d+\.\d+)\]?\s+")
_OURS = re.compile(r"^(?:habanalabs|accel accel\d|\S+ habanalabs)")
_PREFIX = re.compile(
    r"^(?:habanalabs\w*|accel)[ :]+(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|accel\d+|hl\d+|hbl_\d+)?[: ]*",
    re.I,
)
_ADDRESS = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.I)


def parse(line: str) -> Event | None:
    """The event in one line of the kernel log, with or without its time; None of a line that is not about the cards."""
    stamp = _STAMP.match(line)
    message = line[stamp.end() :] if stamp else line
    message = message.strip()
    at_s = float(stamp.group(1)) if stamp else None
    for known in KERNEL_LINES:
        if known.pattern.search(message):
            return Event(known.key, NODE, known.wording, known.severity, known.action, message, at_s)
    if not _OURS.match(message):
        return None
    prefix = _PREFIX.match(message)
    said = message[prefix.end() :] if prefix else message
    component = _component(message, prefix.group("device") if prefix else None)
    named = EVENT_NAME.search(said)
    meaning = describe(named.group("quoted") or named.group("plain")) if named else None
    if meaning is not None:
        return Event(meaning.key, component, meaning.wording, meaning.severity, meaning.action, message, at_s)
    if named is None:
        for known in LINES:
            if known.pattern.search(said):
                return Event(known.key, component, known.wording, known.severity, known.action, message, at_s)
    return Event(UNKNOWN, component, "unknown event", WARNING, WATCH, message, at_s)


def parse_log(lines: Iterable[str], since_s: float = 0.0) -> list[Event]:
    """The events of a kernel log, in its order; those before ``since_s`` seconds after the boot are left out."""
    found = (parse(line) for line in lines)
    return [event for event in found if event is not None and (event.at_s is None or event.at_s >= since_s)]


def _component(message: str, device: str | None) -> str:
    address = _ADDRESS.search(message)
    if address:
        return address.group().lower()
    number = re.search(r"\d+$", device or "")
    return f"accel{number.group()}" if number else NODE
