# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the sources said of one machine, as plain data: from a node's answer, and from a certificate that was kept.

Nothing here judges. A source that gave no answer has a reason in ``unanswered``; a value that it did not give is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Optional

from .._kinds import count, mapping, moment, number, text, truth
from .._printable import printable
from .._refusal import Refusal

FORMAT = 1
#: Lists are cut at these lengths: no machine of the vendor has more.
MOST_CARDS, MOST_PORTS, MOST_ROWS, MOST_EVENTS, MOST_RESULTS, MOST_DISKS = 16, 48, 512, 200, 200, 64

CARDS, PORTS, ROWS, KERNEL = "hl-smi", "port counters", "replaced rows", "kernel log"
CONTROLLER, QUAL, STEP = "management controller", "hl_qual", "training step"
#: Every source, in the order of the page.
SOURCES = (CARDS, ROWS, PORTS, KERNEL, CONTROLLER, QUAL, STEP)

#: Counts of a card, by their names here. The first four are since the driver was loaded, the others of the card's life.
COUNTERS = (
    "corrected",
    "uncorrected",
    "throttled_power",
    "throttled_thermal",
    "corrected_ever",
    "uncorrected_ever",
    "dram_corrected_ever",
    "dram_ever",
)
SINCE_LOAD = COUNTERS[:4]


@dataclass(frozen=True)
class Port:
    """A network port. ``symbol_rate`` is errors per symbol before their correction."""

    port: int
    type: str
    link: Optional[str] = None
    restores: Optional[int] = None
    uncorrected: Optional[int] = None
    symbol_rate: Optional[float] = None

    @property
    def is_internal(self) -> bool:
        """Whether it is a trace of the board."""
        return self.type == "internal"


@dataclass(frozen=True)
class Row:
    """A row of memory that was replaced, and why, in the tool's words."""

    address: str
    cause: str


@dataclass(frozen=True)
class Oam:
    """What the management controller says of a card, each value as it came."""

    oam: int
    keys: Mapping[str, Any] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    alerts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Card:
    """One card. Its network ports, the rows of its memory, its firmware by image."""

    index: int
    serial: Optional[str] = None
    uuid: Optional[str] = None
    bus_id: Optional[str] = None
    module_id: Optional[int] = None
    status: Optional[str] = None
    rows_pending: Optional[bool] = None
    counters: Mapping[str, Optional[int]] = field(default_factory=dict)
    pcie: Mapping[str, Optional[int]] = field(default_factory=dict)
    firmware: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    ports: tuple[Port, ...] = ()
    controller: Optional[Oam] = None

    @property
    def name(self) -> str:
        """What people call it: the serial number is what a seller has on paper."""
        return f"accel{self.index} ({self.serial or 'no serial number'})"


@dataclass(frozen=True)
class Event:
    """A line of the kernel log about the cards that is more than a note."""

    component: str
    severity: str
    text: str


@dataclass(frozen=True)
class Result:
    """What a mode of hl_qual or the training step ended with; ``passed`` is None where it gave no result."""

    name: str
    passed: Optional[bool]
    card: Optional[int] = None
    message: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Disk:
    """A disk and the hours that it counts, which is a hint at the machine's."""

    name: str
    hours: int


@dataclass(frozen=True)
class Evidence:
    """All that was said of a machine at ``taken_at``, in seconds since 1970."""

    node: str
    taken_at: float
    board: Optional[str] = None
    generation: Optional[str] = None
    machine_serial: Optional[str] = None
    driver: Optional[str] = None
    uptime_s: Optional[float] = None
    pci_cards: Optional[int] = None
    cards: tuple[Card, ...] = ()
    events: tuple[Event, ...] = ()
    qual: tuple[Result, ...] = ()
    steps: tuple[Result, ...] = ()
    disks: tuple[Disk, ...] = ()
    unanswered: Mapping[str, str] = field(default_factory=dict)

    @property
    def serials(self) -> frozenset[str]:
        """The serial numbers of its cards."""
        return frozenset(card.serial for card in self.cards if card.serial)

    def as_facts(self) -> dict[str, Any]:
        """Plain data, which ``read`` takes again."""
        return {"format": FORMAT, **asdict(self)}


def read(value: object) -> Evidence:
    """The evidence in a node's answer or in a kept certificate; Refusal where it is none."""
    found = mapping(value)
    taken_at = moment(found.get("taken_at"))
    if found.get("format") != FORMAT or taken_at is None:
        raise Refusal(
            f"This is no evidence of a certificate of format {FORMAT}: let gaudi3.scale.gaudi_certificate write it."
        )
    return Evidence(
        text(found.get("node"), 100) or "unnamed",
        float(taken_at),
        text(found.get("board"), 40),
        text(found.get("generation"), 40),
        text(found.get("machine_serial"), 100),
        text(found.get("driver"), 100),
        _real(found.get("uptime_s")),
        count(found.get("pci_cards")),
        tuple(_card(each) for each in _list(found.get("cards"), MOST_CARDS)),
        tuple(_event(each) for each in _list(found.get("events"), MOST_EVENTS)),
        tuple(_result(each) for each in _list(found.get("qual"), MOST_RESULTS)),
        tuple(_result(each) for each in _list(found.get("steps"), MOST_RESULTS)),
        tuple(_disk(each) for each in _list(found.get("disks"), MOST_DISKS)),
        {name: text(why) or "no reason" for name, why in mapping(found.get("unanswered")).items() if name in SOURCES},
    )


def with_controller(evidence: Evidence, facts: Mapping[str, Any], why: str = "") -> Evidence:
    """The evidence with what gaudi_bmc_facts read; ``why`` says why there is nothing.

    A card of the controller is the one of the same serial number.
    """
    by_serial: dict[str, Oam] = {}
    for each in _list(facts.get("cards"), MOST_CARDS):
        serial, oam = text(each.get("serial"), 100), count(each.get("oam"))
        if serial and oam is not None:
            by_serial[serial] = _of_controller(oam, each)
    unanswered = {name: reason for name, reason in evidence.unanswered.items() if name != CONTROLLER}
    others = sorted(card.name for card in evidence.cards if (card.serial or "") not in by_serial)
    silent = sorted(f"OAM_{each.oam}" for each in by_serial.values() if not each.keys)
    if why or not by_serial:
        unanswered[CONTROLLER] = why or "it lists no card"
    elif facts.get("complete") is not True:
        missing = [text(each) or "" for each in facts.get("unread") or []]
        unanswered[CONTROLLER] = f"it did not give all that it was asked for ({missing[0] if missing else 'unknown'})"
    elif others:
        unanswered[CONTROLLER] = f"it has no card with the serial number of {others[0]}"
    elif silent:
        unanswered[CONTROLLER] = f"it does not tell which boot keys of {silent[0]} are revoked"
    cards = tuple(replace(card, controller=by_serial.get(card.serial or "")) for card in evidence.cards)
    return replace(evidence, cards=cards, unanswered=unanswered)


def _of_controller(oam: int, facts: Mapping[str, Any]) -> Oam:
    firmware = mapping(facts.get("firmware"))
    keys = {name: _scalar(value) for name, value in firmware.items() if name.endswith("_revocation")}
    memory = {name: _scalar(value) for name, value in mapping(facts.get("memory")).items()}
    repair = mapping(facts.get("sram")).get("repair_failure")
    if repair is not None:
        memory["sram_repair_failure"] = _scalar(repair)
    versions = {
        name: _scalar(firmware[name]) for name in ("security_version", "least_security_version") if name in firmware
    }
    kept = ("name", "field", "state", "severity", "message", "value")
    alerts = tuple(
        {name: _scalar(each.get(name)) for name in kept} for each in _list(facts.get("alerts"), MOST_RESULTS)
    )
    return Oam(oam, keys, memory, versions, alerts)


def _card(found: Mapping[str, Any]) -> Card:
    counters, pcie = mapping(found.get("counters")), mapping(found.get("pcie"))
    controller = found.get("controller")
    return Card(
        count(found.get("index")) or 0,
        text(found.get("serial"), 100),
        text(found.get("uuid"), 100),
        text(found.get("bus_id"), 40),
        count(found.get("module_id")),
        text(found.get("status"), 100),
        truth(found.get("rows_pending")),
        {name: count(counters.get(name)) for name in COUNTERS},
        {name: count(pcie.get(name)) for name in ("gen", "gen_max", "width", "width_max")},
        {name: each or "" for name, each in sorted(_named(found.get("firmware"), text).items())},
        tuple(
            Row(text(each.get("address"), 40) or "", text(each.get("cause"), 100) or "")
            for each in _list(found.get("rows"), MOST_ROWS)
        ),
        tuple(_port(each) for each in _list(found.get("ports"), MOST_PORTS)),
        _oam(mapping(controller)) if controller is not None else None,
    )


def _oam(found: Mapping[str, Any]) -> Oam:
    parts = [_named(found.get(part), _scalar) for part in ("keys", "memory", "versions")]
    alerts = _list(found.get("alerts"), MOST_RESULTS)
    return Oam(
        count(found.get("oam")) or 0,
        parts[0],
        parts[1],
        parts[2],
        tuple(_named(each, _scalar) for each in alerts),
    )


def _port(found: Mapping[str, Any]) -> Port:
    return Port(
        count(found.get("port")) or 0,
        text(found.get("type"), 40) or "unknown",
        text(found.get("link"), 40),
        count(found.get("restores")),
        count(found.get("uncorrected")),
        _real(found.get("symbol_rate")),
    )


def _event(found: Mapping[str, Any]) -> Event:
    words = [text(found.get(name), 300) or "" for name in ("component", "severity", "text")]
    return Event(*words)


def _result(found: Mapping[str, Any]) -> Result:
    return Result(
        text(found.get("name"), 100) or "unnamed",
        truth(found.get("passed")),
        count(found.get("card")),
        text(found.get("message"), 300) or "",
        float(moment(found.get("at")) or 0.0),
    )


def _disk(found: Mapping[str, Any]) -> Disk:
    return Disk(text(found.get("name"), 100) or "unnamed", count(found.get("hours")) or 0)


def _list(value: object, most: int) -> list[Mapping[str, Any]]:
    return [mapping(each) for each in value[:most]] if isinstance(value, (list, tuple)) else []


def _real(value: object) -> Optional[float]:
    found = number(value)
    return None if found is None or found < 0 else float(found)


def _named(found: object, read: Callable[[object], Any]) -> dict[str, Any]:
    """Values under names that are a machine's or a file's own, which may hold anything."""
    return {printable(name, 100): read(value) for name, value in mapping(found).items()}


def _scalar(value: object) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    return text(value, 300) if isinstance(value, str) else number(value)
