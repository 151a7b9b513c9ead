# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What was read of a node at one moment. Plain data: nothing here starts a process or judges.

A value that could not be read is None, and its source is named in ``NodeReading.faults``. So a check that finds None
says nothing, and the fault of the read is reported for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .._hl_smi.card import Card
from .events import Event


@dataclass(frozen=True)
class ReadFault:
    """A source that gave no answer, or none that can be true: a tool, a file, or a value such as ``accel3 power_w``."""

    source: str
    reason: str


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
    cards: tuple[Card, ...] = ()
    host: HostReading = HostReading()
    events: tuple[Event, ...] = ()
    processes: tuple[Process, ...] | None = None
    tools: tuple[ToolResult, ...] = ()
    faults: tuple[ReadFault, ...] = ()

    def card(self, index: int) -> Card | None:
        """The card of this index."""
        return next((card for card in self.cards if card.index == index), None)
