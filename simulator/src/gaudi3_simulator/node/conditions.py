"""What is wrong with a card and shows in hl-smi's cells: errors, throttling, a slow link, rows to be replaced.

A fault may carry a number, as its ``count`` or ``generation``.
"""

from __future__ import annotations

from . import faults, node

THROTTLED = {"power": faults.THROTTLED_POWER, "thermal": faults.THROTTLED_THERMAL}

# Speed of a lane by generation of PCIe, as hl-smi writes it.
_SPEEDS = {1: "2.5GT/s", 2: "5GT/s", 3: "8GT/s", 4: "16GT/s", 5: "32GT/s"}
_DEGRADED_GENERATION = 3
_ROW_BYTES = 1024


def _count(simulated: node.Node, kind: str, card: node.Card) -> int:
    return sum(int(fault.get("count", 1)) for fault in simulated.faults(kind, card.index))


def uncorrected(simulated: node.Node, card: node.Card) -> int:
    """Uncorrected memory errors; public reports show a few, and thousands on a dying card."""
    return _count(simulated, faults.ECC_UNCORRECTED, card)


def corrected(simulated: node.Node, card: node.Card) -> int:
    """Corrected memory errors."""
    return _count(simulated, faults.ECC_CORRECTED, card)


def violations(simulated: node.Node, card: node.Card, cause: str) -> int:
    """How often the card was slowed down, for ``power`` or ``thermal`` reasons."""
    return _count(simulated, THROTTLED[cause], card)


def rows_pending(simulated: node.Node, card: node.Card) -> bool:
    """Whether rows of the memory wait for a restart of the driver to be replaced."""
    return simulated.has_fault(faults.ROW_PENDING, card.index) or uncorrected(simulated, card) > 0


def replaced_rows(simulated: node.Node, card: node.Card) -> list[tuple[int, str]]:
    """Address and cause of each replaced row."""
    rows = [(number, "Double Bit ECC") for number in range(min(uncorrected(simulated, card), 32))]
    return [((simulated.state["seed"] + card.index + number) * _ROW_BYTES, cause) for number, cause in rows]


def pcie_generation(simulated: node.Node, card: node.Card) -> int:
    """Generation of the link."""
    slow = next(simulated.faults(faults.PCIE_GENERATION, card.index), None)
    return int(slow.get("generation", _DEGRADED_GENERATION)) if slow else simulated.board.pcie_generation


def pcie_speed(generation: int) -> str:
    """Speed of one lane."""
    return _SPEEDS[generation]
