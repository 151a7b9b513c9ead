# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The page of the exporter of Gaudi cards: which metrics there are, and what becomes of a card's cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi import hl_smi
else:
    from _hl_smi import hl_smi  # the collection's family of hl-smi, installed beside this file

MIB = 1024 * 1024
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
INTEL, OWN, SELF = "habanalabs_", "gaudi_card_", "gaudi_hpu_exporter_"

ECC = {
    f"ecc.errors.{kind}.{span}.total": {"kind": kind.replace("-", "_"), "span": span}
    for kind in ("corrected", "uncorrected", "dram", "dram-corrected")
    for span in ("volatile", "aggregate")
}
ECC_TEXT = "Memory errors: span volatile since the driver was loaded, aggregate over the card's life."
THROTTLE = {f"stats.violation.{cause}": {"cause": cause} for cause in ("power", "thermal")}
THROTTLE_TEXT = "hl-smi's stats.violation by cause; its unit is not documented: growth means throttling."
# Name, help text, factor, and the series: field of hl-smi -Q and its extra labels.
METRICS: tuple[tuple[str, str, int, dict[str, dict[str, str]]], ...] = (
    (INTEL + "clock_soc_mhz", "Clock of the SoC in MHz.", 1, {"clocks.current.soc": {}}),
    (INTEL + "clock_soc_max_mhz", "Highest clock of the SoC in MHz.", 1, {"clocks.max.soc": {}}),
    (INTEL + "ecc_feature_mode", "Error correction of the memory, 1 is on.", 1, {"ecc.mode.current": {}}),
    (INTEL + "memory_free_bytes", "Free memory of the card.", MIB, {"memory.free": {}}),
    (INTEL + "memory_total_bytes", "Memory of the card.", MIB, {"memory.total": {}}),
    (INTEL + "memory_used_bytes", "Used memory of the card.", MIB, {"memory.used": {}}),
    (INTEL + "pci_link_speed", "Speed of the PCIe link in GT/s.", 1, {"pcie.link.speed.current": {}}),
    (INTEL + "pci_link_width", "Lanes of the PCIe link in use.", 1, {"pcie.link.width.current": {}}),
    (INTEL + "power_default_limit_mW", "Power limit in milliwatts.", 1000, {"power.max": {}}),
    (INTEL + "power_mW", "Power drawn from the 54 V rail in milliwatts.", 1000, {"power.draw": {}}),
    (INTEL + "temperature_onchip", "Temperature of the chip in Celsius.", 1, {"temperature.aip": {}}),
    (INTEL + "utilization", "Utilization of the card in percent.", 1, {"utilization.aip": {}}),
    (OWN + "ecc_errors_total", ECC_TEXT, 1, ECC),
    (OWN + "memory_utilization_percent", "Load of the memory in percent.", 1, {"utilization.memory": {}}),
    (OWN + "pci_link_speed_max", "Full speed of the PCIe link in GT/s.", 1, {"pcie.link.speed.max": {}}),
    (OWN + "pci_link_width_max", "Lanes of a sound PCIe link.", 1, {"pcie.link.width.max": {}}),
    (OWN + "throttle_violation", THROTTLE_TEXT, 1, THROTTLE),
)
IDENTITY = ("index", "module_id", "bus_id", "name", "uuid", "serial", "driver_version")
READINGS = tuple(source for *_rest, series in METRICS for source in series)
# The vendor does not say how these are printed: words are left out without a line in the journal.
WORDS = ("ecc.mode.current", "stats.violation.power", "stats.violation.thermal")


def readings(row: dict[str, str], odd: list[hl_smi.OddCell]) -> dict[str, int | None]:
    """The numbers of a card, None where the tool has none (``N/A``); what cannot be read is None and in ``odd``."""
    found: dict[str, int | None] = {}
    for name in READINGS:
        worded = {"enabled": 1, "disabled": 0}.get((row.get(name) or "").lower())
        strange = [] if name in WORDS else odd
        found[name] = hl_smi.read_number(row.get(name), name, row["bus_id"], strange) if worded is None else worded
    return found


@dataclass(frozen=True)
class Status:
    """How one kind of reading fares."""

    error: str | None = "nothing was read yet"
    errors: int = 0
    seconds: float = 0.0
    last_success: float = 0.0  # by the wall clock
    read_at: float = 0.0  # by the clock that never jumps


@dataclass(frozen=True)
class Card:
    """A card's csv row, its numbers, firmware versions, ports (number, type, whether the link is up), power by rail."""

    row: dict[str, str]
    values: dict[str, int | None]
    firmware: dict[str, str]
    ports: list[tuple[int, str, bool]]
    power: dict[str, int | None] = field(default_factory=dict)


def numbers(series: list[tuple[dict[str, str], int | None]], factor: int = 1) -> list[tuple[dict[str, str], float]]:
    """The series that have a value."""
    return [(labels, float(value * factor)) for labels, value in series if value is not None]


def render(cards: list[Card], status: dict[str, Status]) -> str:
    """The page, in Prometheus' text format; a metric without series is not named."""
    page: list[str] = []

    def add(name: str, text: str, series: list[tuple[dict[str, str], float]]) -> None:
        if series:
            kind = "counter" if name.endswith("_total") else "gauge"
            page.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}"))
        for labels, value in series:
            pairs = ",".join(f'{label}="{cell.translate(ESCAPES)}"' for label, cell in labels.items())
            page.append(f"{name}{{{pairs}}} {int(value) if value == int(value) else value}")

    known = [(card, {name: hl_smi.text(card.row[name]) or "" for name in IDENTITY}) for card in cards]
    intel = [
        {
            "Serial": row["serial"],
            "UUID": row["uuid"],
            "device": row["serial"],
            "driver": row["driver_version"],
            "fit": card.firmware.get("uboot") or card.firmware.get("fit", ""),
            "id": row["index"],
            "pod_name": "",
            "pod_namespace": "",
            "spi": card.firmware.get("spi", ""),
        }
        for card, row in known
    ]
    own = [{"device": row["serial"], "id": row["index"]} for _key, row in known]
    for name, text, factor, sources in METRICS:
        found = [
            ({**labels, **extra}, card.values.get(source))
            for card, labels in zip(cards, own if name.startswith(OWN) else intel)
            for source, extra in sources.items()
        ]
        add(name, text, numbers(found, factor))
    rails = [
        ({**labels, "rail": rail}, card.power[rail]) for card, labels in zip(cards, own) for rail in sorted(card.power)
    ]
    add(OWN + "power_watts", "Power drawn from one rail of the card; the card draws their sum.", numbers(rails))
    add(INTEL + "device_config", "1 for each card.", [(labels, 1.0) for labels in intel])
    ports = [
        ({**labels, "port": str(port), "port_type": kind}, float(up))
        for card, labels in zip(cards, intel)
        for port, kind, up in card.ports
    ]
    add(INTEL + "nic_port_status", "Link of a network port, 1 is up.", ports)
    place = [{name: row[name] for name in ("bus_id", "module_id", "name")} for _key, row in known]
    info = [({**labels, **extra}, 1.0) for labels, extra in zip(own, place)]
    add(OWN + "info", "1 for each card, with its PCI address and module id.", info)
    states = [({"reading": kind}, state) for kind, state in status.items()]
    fresh = [(labels, float(state.error is None)) for labels, state in states]
    add(SELF + "read_success", "1 where the last reading succeeded and is fresh.", fresh)
    add(SELF + "read_errors_total", "Readings that failed.", [(who, float(s.errors)) for who, s in states])
    add(SELF + "read_seconds", "How long the last reading took.", [(who, s.seconds) for who, s in states])
    last = [(who, s.last_success) for who, s in states if s.last_success]
    add(SELF + "last_success_timestamp_seconds", "When a reading last succeeded.", last)
    return "\n".join(page) + "\n"
