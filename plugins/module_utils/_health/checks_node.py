# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Checks of the node: driver, number of cards, kernel log, RDMA files, IOMMU, host settings, firewall."""

from __future__ import annotations

from collections.abc import Iterator

from .actions import CONFIGURE, CRITICAL, ERROR, NONE, REBOOT, RELOAD, RESET, WARNING
from .boards import find
from .events import Event
from .readings import NodeReading
from .verdicts import NODE, NODE_FAULT, Finding

#: Clocks further apart than this confuse logs, certificates and rendezvous time limits. This project's limit.
CLOCK_S = 1.0
_CLEARED_BY_START = "normal-start"


def driver(reading: NodeReading) -> Iterator[Finding]:
    """The driver's module is loaded where cards are on the bus."""
    host = reading.host
    if host.driver_loaded is False and host.pci_cards:
        said = f"the driver is not loaded, with {host.pci_cards} cards on the PCI bus"
        yield Finding("driver-loaded", NODE, NODE_FAULT, CRITICAL, RELOAD, said)


def module_files(reading: NodeReading) -> Iterator[Finding]:
    """The modules are built for the running kernel, and no file is empty."""
    files = reading.host.module_files
    if files is None:
        return
    if "habanalabs" not in files:
        said = "the driver's modules are not built for the running kernel"
        yield Finding("driver-built", NODE, NODE_FAULT, CRITICAL, CONFIGURE, said)
    empty = sorted(name for name, size in files.items() if size == 0)
    if empty:
        said = f"module files are empty: {', '.join(empty)}"
        yield Finding("driver-built", NODE, NODE_FAULT, CRITICAL, CONFIGURE, said)


def driver_version(reading: NodeReading) -> Iterator[Finding]:
    """The loaded driver is the installed one."""
    host = reading.host
    if host.driver_version and host.installed_version and host.driver_version != host.installed_version:
        said = f"driver {host.driver_version} is loaded and {host.installed_version} is installed"
        yield Finding("driver-version", NODE, NODE_FAULT, ERROR, RELOAD, said)


def card_count(reading: NodeReading, expected: int | None = None) -> Iterator[Finding]:
    """All cards of the board are on the PCI bus, and the driver shows each of them."""
    found = reading.host.pci_cards
    if found is None:
        return
    board = next((each for each in (find(card.name) for card in reading.cards) if each is not None), None)
    wanted = expected if expected is not None else board.cards if board else None
    if wanted is not None and found < wanted:
        said = f"{found} of {wanted} cards are on the PCI bus"
        yield Finding("card-count", NODE, NODE_FAULT, CRITICAL, REBOOT, said)
    if reading.cards and len(reading.cards) < found:
        said = f"the driver shows {len(reading.cards)} of the {found} cards on the PCI bus"
        yield Finding("card-count", NODE, NODE_FAULT, CRITICAL, REBOOT, said)


def kernel_log(reading: NodeReading) -> Iterator[Finding]:
    """What the driver reported since the card was last started or reset."""
    names = {card.bus_id: f"accel{card.index}" for card in reading.cards}
    found: dict[tuple[str, str], list[Event]] = {}
    for event in reading.events:
        component = names.get(event.component, event.component)
        if event.key == _CLEARED_BY_START and "ready" in event.wording:
            found = {key: kept for key, kept in found.items() if key[0] != component}
        elif event.key == "reset-ends":
            found = {key: kept for key, kept in found.items() if key[0] != component or kept[0].action != RESET}
        elif event.action != NONE:
            found.setdefault((component, event.key), []).append(event)
    for (component, key), events in found.items():
        last = events[-1]
        if key in ("reset-begins", "reset-ends"):
            continue  # the card's status says how it ended
        times = f", {len(events)} times" if len(events) > 1 else ""
        said = f"{last.wording}{times}: {last.line}"
        yield Finding(f"kernel-log:{key}", component, NODE_FAULT, last.severity, last.action, said)


def rdma_files(reading: NodeReading) -> Iterator[Finding]:
    """Each card has its RDMA device file, without which no card can be acquired."""
    host = reading.host
    if host.driver_loaded and host.uverbs is not None and reading.cards and host.uverbs < len(reading.cards):
        said = f"{host.uverbs} of {len(reading.cards)} device files are in /dev/infiniband"
        yield Finding("rdma-files", NODE, NODE_FAULT, ERROR, CONFIGURE, said)


def iommu(reading: NodeReading) -> Iterator[Finding]:
    """The IOMMU does not translate the cards' addresses."""
    if reading.host.iommu:
        yield Finding("iommu", NODE, NODE_FAULT, CRITICAL, CONFIGURE, reading.host.iommu)


def huge_pages(reading: NodeReading) -> Iterator[Finding]:
    """As many huge pages as the host was set up for."""
    host = reading.host
    if host.huge_pages is not None and host.huge_pages_wanted is not None and host.huge_pages < host.huge_pages_wanted:
        said = f"{host.huge_pages} huge pages are set aside where {host.huge_pages_wanted} are wanted"
        yield Finding("huge-pages", NODE, NODE_FAULT, WARNING, CONFIGURE, said)


def governor(reading: NodeReading) -> Iterator[Finding]:
    """All processors run with the governor ``performance``; machines without governors have nothing to set."""
    slow = sorted(set(reading.host.governors) - {"performance"})
    if slow:
        said = f"processors run with the governor {', '.join(slow)} instead of performance"
        yield Finding("governor", NODE, NODE_FAULT, WARNING, CONFIGURE, said)


def firewall(reading: NodeReading) -> Iterator[Finding]:
    """The firewall's table is the one that was loaded. Jobs go on without it, so this drains no node."""
    if reading.host.firewall:
        yield Finding("firewall", NODE, NODE_FAULT, WARNING, CONFIGURE, reading.host.firewall)


def clock(reading: NodeReading) -> Iterator[Finding]:
    """The clock is close to its source's."""
    offset = reading.host.clock_offset_s
    if offset is not None and abs(offset) > CLOCK_S:
        said = f"the clock is {offset:+.1f} s off"
        yield Finding("clock", NODE, NODE_FAULT, WARNING, CONFIGURE, said)
