# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The dictionary of driver events: a record of the kernel log becomes wording, severity, action and runbook.

Only what the driver wrote is read, as ``_component`` decides: by the device that the kernel names, else by the form of
the line. Nothing that a process's name or a file's name may hold has a say. A record with an event's name is taken
apart by the grammar in ``event_names``. Any other record of the driver is looked up in ``LINES``. A record of it that
neither knows is an "unknown event": it is never dropped. Sources of the texts: public transcripts and the public
driver source, as ``docs/operate/health.md`` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .actions import CONFIGURE, CRITICAL, ERROR, INFO, NONE, REBOOT, RELOAD, REPLACE, RETRY, WARNING, WATCH
from .event_names import EVENT_NAME, describe
from .kernel import Record, of_text

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
        """Anchor of the event's section in docs/operate/health.md."""
        return f"docs/operate/health.md#{self.key}"


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


_BDF = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"

# What the driver says of a device. Each pattern begins where the sentence begins; the first that fits counts.
LINES = (
    _line("normal-start", r"habanalabs device found \[", "the driver finds the card"),
    _line(
        "normal-start", r"Loading secured firmware|preboot full|boot-fit version|Linux version", "firmware is loaded"
    ),
    _line("normal-start", r"Successfully (loaded firmware|added device)", "the card is ready"),
    _line(
        "normal-start", r"Found \S+ device with \d+GB|\w+: add sensors information|IB device registered", "it comes up"
    ),
    _line("reset-begins", r"Going to reset device", "the card is reset", WARNING, WATCH),
    _line("reset-ends", r"Successfully finished resetting", "the card's reset has ended", INFO, WATCH),
    _line(
        "reset-failed",
        rf"(?:{_BDF} )?Failed to reset! Device is NOT usable",
        "the card's reset failed",
        CRITICAL,
        RELOAD,
    ),
    _line("heartbeat-lost", r"(?:Device )?heartbeat failed", "the card's firmware does not answer", CRITICAL, RELOAD),
    _line(
        "processor-silent",
        r"Failed to communicate with Device CPU|failed to initialize CPU H/W queues",
        "the card's processor does not answer, not even while the driver is loaded",
        CRITICAL,
        REPLACE,
    ),
    _line(
        "firmware-file-missing",
        r"Firmware file \S+ is not found|Direct firmware load for \S+ failed",
        "the firmware's file is not on the node",
        CRITICAL,
        CONFIGURE,
    ),
    _line("initialisation-failed", r"failed to initialize the H/W", "the card did not start", CRITICAL, RELOAD),
    _line("mac-timeout", r"Timeout while MAC channel \d+ reset", "a port's MAC does not reset", ERROR, RELOAD),
    _line(
        "no-rdma-device",
        r"failed to find matching Habana IB device",
        "the RDMA module did not load",
        ERROR,
        CONFIGURE,
    ),
    _line(
        "pcie-uncorrected",
        r"(?:AER: )?PCIe Bus Error: severity=(Uncorrect|Fatal)\w*",
        "the PCIe link reports an error that was not corrected",
        CRITICAL,
        REBOOT,
    ),
    _line(
        "pcie-corrected",
        r"(?:AER: )?PCIe Bus Error: severity=Correct\w*",
        "the PCIe link reports an error that was corrected",
        WARNING,
        WATCH,
    ),
    _line("memory-error", r".{0,80}?ECC error detected", "a memory error, without the event's name", ERROR, RETRY),
)

# What the driver's modules say of no device, after "MODULE: ". These are whole sentences, as the kernel names nobody
# for them and the first words of a line may be a process's name.
MODULE_LINES = (
    _line("normal-start", r"loading driver, version: \S+", "the driver's module is loaded"),
    _line("normal-stop", r"driver removed", "the driver's module is unloaded"),
    _line(
        "initialisation-failed",
        rf"Failed to initialize (?:accel|hl)\d+\. Device (?P<bdf>{_BDF}) is NOT usable!",
        "the card did not start",
        CRITICAL,
        RELOAD,
    ),
    _line(
        "no-rdma-device",
        r"Unknown symbol ib_\w+ \(err -?\d+\)|failed to find matching Habana IB device\.?",
        "the RDMA module did not load",
        ERROR,
        CONFIGURE,
    ),
    _line(
        "module-option-unknown",
        r"unknown parameter '[\w.-]*' ignored",
        "an option of the module is not known",
        WARNING,
        CONFIGURE,
    ),
)

# Whole sentences of the kernel that name no driver. The first has the name of a process before it.
KERNEL_LINES = (
    _line(
        "page-table",
        r".{1,15}: Corrupted page table at address [0-9a-f]{1,16}"
        r"|Corrupted page table at address [0-9a-f]{1,16}|Bad pagetable: [0-9a-f]{4} \[#\d+\][ A-Z]*",
        "page tables are damaged, as under an IOMMU that translates the cards' addresses",
        CRITICAL,
        CONFIGURE,
    ),
    _line(
        "module-rejected",
        r"(?:\w{1,55}: )?Loading of module with unavailable key is rejected",
        "the kernel takes signed modules only (Secure Boot)",
        ERROR,
        CONFIGURE,
    ),
)

# What the kernel puts before a message of a device: the driver's name (else the class), and the device's name. A
# network device's or an RDMA device's own name may follow that of its card.
_DEVICE = re.compile(
    rf"(?P<driver>habanalabs\w*|accel) (?P<name>(?P<bdf>{_BDF})|(?:hl|accel)(?P<index>\d{{1,3}})|[\w.-]{{1,60}})"
    r"(?: (?P<more>[\w.-]{1,60}))?: (?P<said>.*)",
    re.S,
)
_MODULE = re.compile(r"(?P<module>habanalabs(?:_[a-z]+)?): (?P<said>.*)", re.S)
_PCI = "+pci:"


def parse(line: str) -> Event | None:
    """The event in one line of ``dmesg``, with or without its time; None of a line that is not about the cards."""
    return next((event for event in map(event_of, of_text([line])) if event is not None), None)


def event_of(record: Record) -> Event | None:
    """The event in a record of the kernel log; None of one that the driver did not write."""
    message = record.message
    if not record.device and record.is_of_a_process:
        return None
    if not record.subsystem:
        for known in KERNEL_LINES:
            if known.pattern.fullmatch(message):
                return Event(known.key, NODE, known.wording, known.severity, known.action, message, record.at_s)
        module = _MODULE.fullmatch(message)
        if module is not None:
            return _of_a_module(module.group("said"), record)
    device = _DEVICE.fullmatch(message)
    component = None if device is None else _component(record, device)
    if device is None or component is None:
        return None
    said = device.group("said")
    named = EVENT_NAME.match(said)
    meaning = describe(named.group("quoted") or named.group("plain")) if named else None
    if meaning is not None:
        return Event(meaning.key, component, meaning.wording, meaning.severity, meaning.action, message, record.at_s)
    if named is None:
        for known in LINES:
            if known.pattern.match(said):
                return Event(known.key, component, known.wording, known.severity, known.action, message, record.at_s)
        if not record.attributed and device.group("index"):  # short enough for a process's name
            return Event(UNKNOWN, NODE, "unknown event", INFO, WATCH, message, record.at_s)
    return Event(UNKNOWN, component, "unknown event", WARNING, WATCH, message, record.at_s)


def _of_a_module(said: str, record: Record) -> Event:
    """The event in a sentence of no device. One that is not known is a note: any process may have such a name."""
    for known in MODULE_LINES:
        found = known.pattern.fullmatch(said)
        if found is not None:
            component = found.groupdict().get("bdf") or NODE
            return Event(known.key, component, known.wording, known.severity, known.action, record.message, record.at_s)
    return Event(UNKNOWN, NODE, "unknown event", INFO, WATCH, record.message, record.at_s)


def _component(record: Record, device: re.Match[str]) -> str | None:
    """What a message of a device concerns; None where the kernel does not name the device that the message does."""
    bdf, index = device.group("bdf"), device.group("index")
    if record.attributed:
        if not record.subsystem or not record.device:
            return None
        if record.device.startswith(_PCI) or bdf:
            return bdf if bdf and record.device == _PCI + bdf else None
    elif not bdf and not index:
        return None  # a name such as habanalabs.cn.0, which only the kernel's own word makes the driver's
    return bdf or (f"accel{int(index)}" if index else NODE)


def parse_log(lines: Iterable[str], since_s: float = 0.0) -> list[Event]:
    """The events of a text of ``dmesg``, as ``events_of`` gives them."""
    return events_of(of_text(lines), since_s)


def events_of(records: Iterable[Record], since_s: float = 0.0) -> list[Event]:
    """The events of a kernel log, in its order; those before ``since_s`` seconds after the boot are left out."""
    found = map(event_of, records)
    return [event for event in found if event is not None and (event.at_s is None or event.at_s >= since_s)]
