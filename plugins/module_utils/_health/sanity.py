# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Values that cannot be true are taken out of a reading before any check sees them, and are faults of the read.

Reports from the field: a temperature of 505712272 C, a draw of 1,900 W, a total memory that falls to what is used while
the card resets, counters that are off by exact multiples of 2**32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .._hl_smi.card import Card, CardPort
from .boards import POSSIBLE_TEMPERATURE_C, find
from .readings import NodeReading, ReadFault

_WRAP = 1 << 32
#: Beyond this a card cannot draw; the alert HpuReadingImpossible has the same limit.
_POWER_FACTOR = 1.3


def sane(reading: NodeReading, before: NodeReading | None = None) -> NodeReading:
    """The reading without impossible values, which become ``ReadFault``. ``before`` is the reading ahead of it."""
    faults: list[ReadFault] = []
    cards = []
    for card in reading.cards:
        earlier = before.card(card.index) if before is not None else None
        cards.append(_sane_card(card, earlier, faults))
    return replace(reading, cards=tuple(cards), faults=(*reading.faults, *faults))


def _sane_card(card: Card, before: Card | None, faults: list[ReadFault]) -> Card:
    board = find(card.name)
    cap = card.power_max_w or (board.power_cap_w if board else None)
    least, most = POSSIBLE_TEMPERATURE_C
    rules: tuple[tuple[str, Callable[[Any], bool]], ...] = (
        # 0 is possible: a card that did not initialise shows it.
        ("temperature_c", lambda value: value == 0 or least <= value <= most),
        ("power_w", lambda value: 0 <= value <= _POWER_FACTOR * cap if cap else value >= 0),
        ("utilization", lambda value: 0 <= value <= 100),
        (
            "memory_total_mib",
            lambda value: board is None or value >= board.memory_mib // 2 or card.status != "Operational",
        ),
        ("memory_used_mib", lambda value: value >= 0 and (board is None or value <= board.memory_mib)),
        ("pcie_gen", lambda value: 1 <= value <= (card.pcie_gen_max or value)),
        ("pcie_width", lambda value: 1 <= value <= (card.pcie_width_max or value)),
        ("uncorrected", lambda value: _is_count(value, before.uncorrected if before else None)),
        ("corrected", lambda value: _is_count(value, before.corrected if before else None)),
        ("throttled_power", lambda value: _is_count(value, before.throttled_power if before else None)),
        ("throttled_thermal", lambda value: _is_count(value, before.throttled_thermal if before else None)),
    )
    changes: dict[str, Any] = {}
    for name, is_possible in rules:
        value = getattr(card, name)
        if value is not None and not is_possible(value):
            changes[name] = None
            faults.append(ReadFault(f"accel{card.index} {name}", f"{value} cannot be true"))
    ports = tuple(_sane_port(card, port, before, faults) for port in card.ports)
    return replace(card, ports=ports, **changes)


def _sane_port(card: Card, port: CardPort, before: Card | None, faults: list[ReadFault]) -> CardPort:
    if not port.errors:
        return port
    earlier: Mapping[str, int] = (
        next((each.errors for each in before.ports if each.port == port.port), {}) if before else {}
    )
    torn = {name for name, value in port.errors.items() if not _is_count(value, earlier.get(name))}
    for name in sorted(torn):
        said = f"{port.errors[name]} after {earlier.get(name, 'nothing')} cannot be true"
        faults.append(ReadFault(f"accel{card.index} port {port.port} {name}", said))
    return replace(port, errors={name: value for name, value in port.errors.items() if name not in torn})


def _is_count(value: int, before: int | None) -> bool:
    """Whether a counter of errors can have this value: one torn by 2**32 cannot. Reloading the driver resets it."""
    return value >= 0 and value - (before or 0) < _WRAP
