# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a sound board shows: number of cards and ports, memory, what a sensor can read, floors of bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: No reading outside of it is a card's: a public monitor skips temperatures above 300 C.
POSSIBLE_TEMPERATURE_C = (1, 150)


@dataclass(frozen=True)
class Board:
    """One kind of card.

    ``idle_memory_mib`` is what an idle card has in use, ``power_cap_w`` the highest limit that a release showed.
    ``floors_gb_s`` are the least network bandwidths of hccl_demo on eight cards, by collective.
    """

    product: str
    generation: str
    cards: int
    internal_ports: int
    external_ports: int
    memory_mib: int
    idle_memory_mib: int
    power_cap_w: int
    floors_gb_s: Mapping[str, float] = field(default_factory=dict)


# The floors of HL-325L are dell/omnia's acceptance list. For HL-225 one run of 258.2 GB/s is public (Intel's tests for
# OpenShift): its floor is nine tenths of that, and this project's own.
BOARDS = {
    "HL-325L": Board(
        "HL-325L", "gaudi3", 8, 21, 3, 131072, 672, 900,
        floors_gb_s={"all_reduce": 255.0, "all_gather": 254.0, "reduce_scatter": 253.0, "all2all": 253.0},
    ),
    "HL-225": Board("HL-225", "gaudi2", 8, 21, 3, 98304, 768, 600, floors_gb_s={"all_reduce": 232.0}),
}  # fmt: skip


def find(name: str | None) -> Board | None:
    """The board of a product name, None of one that is not known: no floor is applied then."""
    return BOARDS.get(name or "")
