# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What was read of a node at one moment. Plain data: nothing here starts a process or judges.

A value that could not be read is None, and its source is named in ``NodeReading.faults``. So a check that finds None
says nothing, and the fault of the read is reported for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .events import Event


@dataclass(frozen=True)
class ReadFault:
    """A source that gave no answer, or none that can be true: a tool, a file, or a value such as ``accel3 power_w``."""

    source: str
    reason: str


@dataclass(frozen=True)
class PortReading:
    """One network port of a card; ``errors`` has counters by name, ``enabled`` whether the host brought it up."""

    port: int
    type: str
    link: str | None = None
    enabled: bool | None = None
    mtu: int | None = None
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        """Whether the port stays inside the box."""
        return self.type == "internal"


@dataclass(frozen=True)
class CardReading:
    """One card. Temperatures in degrees Celsius, power in watts, memory in MiB, utilisation in percent."""

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
    ports: tuple[PortReading, ...] = ()

    @property
    def label(self) -> str:
        """How the card is named to people: by index and PCI address."""
        return f"accel{self.index} ({self.bus_id})"


@dataclass(frozen=True)
class Process:
    """A process that holds a card; ``unit`` is the systemd unit it belongs to, empty where it belongs to none."""

    pid: int
    name: str
    card: int
    unit: str = ""


@dataclass(frozen=True)
class HostReading:
    """What of the host decides over its cards. Huge pages are counted in pages, the clock's offset is in seconds."""

    pci_cards: int | None = None
    iommu: str | None = None
    driver_loaded: bool | None = None
    driver_version: str | None = None
    installed_version: str | None = None
    module_files: Mapping[str, int] | None = None
    uverbs: int | None = None
    huge_pages: int | None = None
    huge_pages_wanted: int | None = None
    governors: tuple[str, ...] = ()
    clock_offset_s: float | None = None
    gaudinet: str | None = None
    firewall: str | None = None
    port_macs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """What a tool of the standard or deep depth ended with; ``figures`` in GB/s by name of the collective or test."""

    name: str
    passed: bool | None
    message: str = ""
    card: int | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeReading:
    """Everything that was read of a node, at ``taken_at`` (seconds, of any clock that only goes forward)."""

    taken_at: float
    cards: tuple[CardReading, ...] = ()
    host: HostReading = HostReading()
    events: tuple[Event, ...] = ()
    processes: tuple[Process, ...] | None = None
    tools: tuple[ToolResult, ...] = ()
    faults: tuple[ReadFault, ...] = ()

    def card(self, index: int) -> CardReading | None:
        """The card of this index."""
        return next((card for card in self.cards if card.index == index), None)


#: Counters of a port that a check reads, as the tool names them.
PORT_COUNTERS = (
    "pcs_link_restores",
    "pcs_local_faults",
    "cw_uncorrect_accum",
    "pre_FEC_SER_int",
    "pre_FEC_SER_exp (negative)",
)


def card_of_facts(facts: Mapping[str, Any]) -> CardReading:
    """A card's reading from its facts (``_hl_smi.hl_smi.card_facts``)."""
    pcie = facts.get("pcie") or {}
    ecc = facts.get("ecc") or {}
    violations = facts.get("violations") or {}
    return CardReading(
        index=int(facts["index"]),
        bus_id=str(facts["bus_id"]),
        module_id=facts.get("module_id"),
        serial=facts.get("serial"),
        name=facts.get("name"),
        status=facts.get("status"),
        temperature_c=facts.get("temperature_c"),
        power_w=facts.get("power_draw_w"),
        power_max_w=facts.get("power_max_w"),
        utilization=facts.get("utilization_percent"),
        memory_used_mib=facts.get("memory_used_mib"),
        memory_total_mib=facts.get("memory_total_mib"),
        uncorrected=ecc.get("uncorrected_volatile"),
        corrected=ecc.get("corrected_volatile"),
        rows_pending=facts.get("rows_pending"),
        throttled_power=_count(violations.get("power")),
        throttled_thermal=_count(violations.get("thermal")),
        pcie_gen=pcie.get("gen_current"),
        pcie_gen_max=pcie.get("gen_max"),
        pcie_width=pcie.get("width_current"),
        pcie_width_max=pcie.get("width_max"),
        firmware=dict(facts.get("firmware") or {}),
        ports=tuple(
            PortReading(
                port["port"],
                port["type"],
                port.get("link"),
                errors={
                    name: value
                    for name, value in (port.get("counters") or {}).items()
                    if name in PORT_COUNTERS and value is not None
                },
            )
            for port in facts.get("ports") or ()
        ),
    )


def _count(cell: Any) -> int | None:
    return int(cell) if str(cell).isdigit() else None
