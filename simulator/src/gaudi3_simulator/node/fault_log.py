"""What faults write to the kernel log: when they are set, and again when the driver meets them."""

from __future__ import annotations

from . import driver_log, faults, kernel_log, node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write(simulated: node.Node, kind: str) -> None:
    """The lines of every fault of a kind."""
    for fault in simulated.faults(kind):
        write_one(simulated, fault)


def write_one(simulated: node.Node, fault: dict[str, Any]) -> None:
    """The lines of one fault, of a card where the driver is there to write them."""
    kind, booted_at = fault["kind"], simulated.runtime["booted_at"]
    if kind == faults.BAD_PAGETABLE and not simulated.passthrough:
        corrupted, bad = driver_log.PAGE_TABLE
        kernel_log.write(booted_at, corrupted, level=kernel_log.ALERT)
        kernel_log.write(booted_at, bad, level=kernel_log.EMERGENCY)
    card = next((card for card in simulated.cards if card.index == fault.get("card")), None)
    if card is None or not simulated.driver_up:
        return
    version = simulated.driver_version
    if kind == faults.CPU_TIMEOUT:
        kernel_log.write(booted_at, *driver_log.processor(card, version), level=kernel_log.ERROR)
    elif kind == faults.RESET_FAILED:
        kernel_log.write(booted_at, driver_log.heartbeat(card, version), level=kernel_log.ERROR)
        kernel_log.write(booted_at, driver_log.resetting(card, version))
        kernel_log.write(booted_at, driver_log.reset(card, version, failed=True), level=kernel_log.ERROR)
    elif kind == faults.KERNEL_EVENT:
        kernel_log.write(booted_at, driver_log.event(card, version, fault["event"]), level=kernel_log.ERROR)
    elif kind == faults.MAC_TIMEOUT and simulated.loaded(node.NIC):
        kernel_log.write(booted_at, driver_log.mac(card, version), level=kernel_log.ERROR)
