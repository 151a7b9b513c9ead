# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A card as one value: what hl-smi's texts say of it, for checks, and as the facts that users see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .hl_smi import CardLog, HlSmiError, Log, OddCell, Port, read_number, release_of, require_identity, text


@dataclass(frozen=True)
class _Cell:
    """A cell of ``-Q``: its place in the facts, its field, and the attribute of a card where a check reads it."""

    fact: str
    field: str
    attribute: str = ""
    is_text: bool = False


#: In the order of the facts.
_CELLS = (
    _Cell("index", "index", "index"),
    _Cell("module_id", "module_id", "module_id"),
    _Cell("bus_id", "bus_id", "bus_id", is_text=True),
    _Cell("name", "name", "name", is_text=True),
    _Cell("uuid", "uuid", is_text=True),
    _Cell("serial", "serial", "serial", is_text=True),
    _Cell("driver_version", "driver_version", is_text=True),
    _Cell("memory_total_mib", "memory.total", "memory_total_mib"),
    _Cell("memory_used_mib", "memory.used", "memory_used_mib"),
    _Cell("memory_free_mib", "memory.free"),
    _Cell("power_draw_w", "power.draw", "power_w"),
    _Cell("power_max_w", "power.max", "power_max_w"),
    _Cell("temperature_c", "temperature.aip", "temperature_c"),
    _Cell("utilization_percent", "utilization.aip", "utilization"),
    _Cell("memory_utilization_percent", "utilization.memory"),
    _Cell("ecc_mode.current", "ecc.mode.current", is_text=True),
    _Cell("ecc_mode.pending", "ecc.mode.pending", is_text=True),
    _Cell("ecc.uncorrected_volatile", "ecc.errors.uncorrected.volatile.total", "uncorrected"),
    _Cell("ecc.uncorrected_aggregate", "ecc.errors.uncorrected.aggregate.total"),
    _Cell("ecc.corrected_volatile", "ecc.errors.corrected.volatile.total", "corrected"),
    _Cell("ecc.corrected_aggregate", "ecc.errors.corrected.aggregate.total"),
    _Cell("ecc.dram_volatile", "ecc.errors.dram.volatile.total"),
    _Cell("ecc.dram_aggregate", "ecc.errors.dram.aggregate.total"),
    _Cell("ecc.dram_corrected_volatile", "ecc.errors.dram-corrected.volatile.total"),
    _Cell("ecc.dram_corrected_aggregate", "ecc.errors.dram-corrected.aggregate.total"),
    _Cell("pcie.gen_current", "pcie.link.gen.current", "pcie_gen"),
    _Cell("pcie.gen_max", "pcie.link.gen.max", "pcie_gen_max"),
    _Cell("pcie.width_current", "pcie.link.width.current", "pcie_width"),
    _Cell("pcie.width_max", "pcie.link.width.max", "pcie_width_max"),
    _Cell("pcie.speed_current", "pcie.link.speed.current", is_text=True),
    _Cell("pcie.speed_max", "pcie.link.speed.max", is_text=True),
    _Cell("clocks.soc_current_mhz", "clocks.current.soc"),
    _Cell("clocks.soc_max_mhz", "clocks.max.soc"),
    _Cell("clocks.soc_limit_mhz", "clocks.limit.soc"),
    _Cell("clocks.tpc_limit_mhz", "clocks.limit.tpc"),
    _Cell("violations.power", "stats.violation.power", is_text=True),
    _Cell("violations.thermal", "stats.violation.thermal", is_text=True),
)


@dataclass(frozen=True)
class CardPort:
    """One network port of a card; ``enabled`` says whether the host brought it up.

    ``counters`` has all that the tool counts, None where it was not asked, and ``errors`` those that the checks of
    ``_health`` read.
    """

    port: int
    type: str
    link: str | None = None
    enabled: bool | None = None
    mtu: int | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    counters: Mapping[str, int | None] | None = None

    @property
    def is_internal(self) -> bool:
        """Whether the port stays inside the box."""
        return self.type == "internal"

    def as_facts(self) -> dict[str, Any]:
        """The port as users see it."""
        facts: dict[str, Any] = {"port": self.port, "type": self.type, "link": self.link}
        return facts if self.counters is None else {**facts, "counters": dict(self.counters)}


@dataclass(frozen=True)
class Card:
    """One card, as hl-smi and the host have it.

    Temperatures are in degrees Celsius, power in watts, memory in MiB, utilisation in percent.
    """

    index: int
    bus_id: str
    module_id: int | None = None
    serial: str | None = None
    name: str | None = None
    status: str | None = None
    temperature_c: int | None = None
    power_w: int | None = None
    power_max_w: int | None = None
    utilization: int | None = None
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    uncorrected: int | None = None
    corrected: int | None = None
    rows_pending: bool | None = None
    throttled_power: int | None = None
    throttled_thermal: int | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    firmware: Mapping[str, str] = field(default_factory=dict)
    flow_control: bool | None = None
    ports: tuple[CardPort, ...] = ()
    #: What no check reads, by its place in the facts; and of the detail log, empty where that was not asked for.
    details: Mapping[str, Any] = field(default_factory=dict)
    of_log: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How the card is named to people: by index and PCI address."""
        return f"accel{self.index} ({self.bus_id})"

    def as_facts(self) -> dict[str, Any]:
        """The card as users see it, ``ansible_facts.gaudi.cards``."""
        facts: dict[str, Any] = {}
        for cell in _CELLS:
            group, _dot, name = cell.fact.rpartition(".")
            place = facts.setdefault(group, {}) if group else facts
            place[name] = getattr(self, cell.attribute) if cell.attribute else self.details[cell.fact]
        if self.of_log:
            facts.update(self.of_log, rows_pending=self.rows_pending)
        if self.ports:
            facts["ports"] = [port.as_facts() for port in self.ports]
        return facts


def read_card(
    row: Mapping[str, str], log: CardLog | None, ports: list[Port] | None, odd: list[OddCell] | None = None
) -> Card:
    """A card from its csv row, with what the detail log and the port lists add; odd cells go into ``odd``."""
    require_identity(row)
    bus_id = row["bus_id"].lower()
    strange = [] if odd is None else odd
    known: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for cell in _CELLS:
        found = row.get(cell.field)
        value = text(found) if cell.is_text else read_number(found, cell.field, bus_id, strange)
        (known if cell.attribute else details)[cell.attribute or cell.fact] = value
    known.update(
        bus_id=bus_id,
        throttled_power=_count(details["violations.power"]),
        throttled_thermal=_count(details["violations.thermal"]),
    )
    of_log: dict[str, Any] = {}
    if log is not None:
        rails = {rail: read_number(found, f"power draw ({rail})", bus_id, strange) for rail, found in log.power.items()}
        of_log = {"device": log.device, "status": log.status, "model": log.model, "firmware": log.firmware}
        of_log.update(power_rails_w=rails, power_total_w=total_power(rails))
        known.update(status=log.status, firmware=dict(log.firmware))
        known["rows_pending"] = {"yes": True, "no": False}.get((log.rows_pending or "").lower())
    read = tuple(_read_port(port, bus_id, strange) for port in ports or ())
    return Card(**known, ports=read, details=details, of_log=of_log)


def read_cards(
    rows: list[dict[str, str]], log: Log | None, ports: Mapping[str, list[Port]], odd: list[OddCell] | None = None
) -> list[Card]:
    """All cards of a host, in the order of the csv rows."""
    cards = []
    for row in rows:
        bus_id = row["bus_id"].lower()
        card_log = None if log is None else log.cards.get(bus_id)
        if log is not None and card_log is None:
            raise HlSmiError(f"card {bus_id} is in the csv and not in the detail log")
        cards.append(read_card(row, card_log, ports.get(bus_id), odd))
    return cards


def _read_port(port: Port, bus_id: str, odd: list[OddCell]) -> CardPort:
    if port.counters is None:
        return CardPort(port.port, port.type, port.link)
    counters = {name: read_number(cell, f"port counter {name}", bus_id, odd) for name, cell in port.counters.items()}
    return CardPort(port.port, port.type, port.link, counters=counters)


def _count(cell: str | None) -> int | None:
    return int(cell) if cell is not None and cell.isdigit() else None


def total_power(rails: dict[str, int | None]) -> int | None:
    """A card's power in watts, which is the sum of its 54 V and 12 V rails; None where one is unknown."""
    both = [rails.get(rail) for rail in ("54v", "12v")]
    return None if None in both else sum(watts or 0 for watts in both)


def shared_firmware(cards: list[dict[str, Any]]) -> dict[str, str | None]:
    """Each firmware's version where every card has the same one, None where the cards differ."""
    names = sorted({name for card in cards for name in card.get("firmware", {})})
    versions = {name: {card.get("firmware", {}).get(name) for card in cards} for name in names}
    return {name: seen.pop() if len(seen) == 1 else None for name, seen in versions.items()}


def host_facts(
    rows: list[dict[str, str]],
    log: Log | None,
    ports: dict[str, list[Port]],
    installed: bool,
    driver_up: bool,
    odd: list[OddCell] | None = None,
) -> dict[str, Any]:
    """The facts of a host, ``ansible_facts.gaudi``; cells that cannot be read go into ``odd``."""
    cards = [card.as_facts() for card in read_cards(rows, log, ports, odd)]
    driver_version = next((card["driver_version"] for card in cards if card["driver_version"]), None)
    if driver_version is None and log is not None:
        driver_version = log.driver_version
    nic_driver = next((text(row.get("nic_driver_version")) for row in rows), None)
    return {
        "installed": installed,
        "driver_up": driver_up,
        "driver_version": driver_version,
        "nic_driver_version": nic_driver,
        "hl_smi_version": None if log is None else log.hl_smi_version,
        "release": release_of(driver_version),
        "card_count": len(cards),
        "firmware": shared_firmware(cards),
        "cards": cards,
    }
