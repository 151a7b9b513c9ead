# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The external ports of a host's Gaudi cards: which there are, and which are down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable

from .command import HlSmi
from .hl_smi import HlSmiError, Port


@dataclass(frozen=True)
class CardPorts:
    """A card with its external ports."""

    index: int
    bus_id: str
    ports: list[Port]

    def down(self) -> list[str]:
        """Names of the ports without a link, for a sentence."""
        return [f"card {self.index} ({self.bus_id}) port {port.port}" for port in self.ports if port.link != "up"]


def external(tool: HlSmi) -> list[CardPorts]:
    """The external ports of every card. Which they are depends on the board, so each card is asked."""
    cards = []
    for row in tool.query(("index", "bus_id")):
        if not row["index"].isdigit():
            raise HlSmiError(f"hl-smi names a card's index {row['index']!r}, which is no number")
        ports = [port for port in tool.ports(row["bus_id"]) if port.type == "external"]
        cards.append(CardPorts(int(row["index"]), row["bus_id"].lower(), ports))
    return with_links(tool, cards)


def with_links(tool: HlSmi, cards: list[CardPorts]) -> list[CardPorts]:
    """The same ports with their present link state."""
    return [
        CardPorts(card.index, card.bus_id, tool.links(card.bus_id, card.ports) if card.ports else []) for card in cards
    ]


def down(cards: list[CardPorts]) -> list[str]:
    """Every external port without a link."""
    return [name for card in cards for name in card.down()]


def wait_up(
    tool: HlSmi, cards: list[CardPorts], seconds: int, sleep: Callable[[float], None] = time.sleep
) -> list[str]:
    """Wait for links to come up; return the ports which are down at the end."""
    deadline = time.monotonic() + seconds
    while True:
        waiting = [card for card in with_links(tool, cards) if card.down()]
        if not waiting or time.monotonic() >= deadline:
            return down(waiting)
        cards = waiting
        sleep(1)
