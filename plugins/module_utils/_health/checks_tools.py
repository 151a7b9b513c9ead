# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Checks of what the standard and deep depth ran: acquiring cards, hl_qual, collectives against their floors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .actions import CONFIGURE, CRITICAL, ERROR, FREE, ISOLATE, RELOAD
from .boards import find
from .readings import NodeReading, ToolResult
from .verdicts import CHECK_ERROR, NODE, NODE_FAULT, USER_FAULT, Finding

ACQUIRE, QUAL, COLLECTIVES = "acquire", "hl_qual", "hccl_demo"

# Texts of a card that cannot be acquired, as users reported them.
_ACQUIRE = (
    (r"another release|synStatus ?= ?26", USER_FAULT, CONFIGURE, "container and driver are of different releases"),
    (r"already acquired|synStatus ?= ?20|busy", USER_FAULT, FREE, "another process holds the card"),
    (r"infiniband|uverbs", NODE_FAULT, CONFIGURE, "the RDMA device files are missing"),
    (r"not found|synStatus ?= ?8\b", NODE_FAULT, RELOAD, "no card was found"),
)


def _results(reading: NodeReading, tool: str) -> Iterator[tuple[ToolResult, str]]:
    for result in reading.tools:
        if result.name.partition(" ")[0] == tool:
            yield result, NODE if result.card is None else f"accel{result.card}"


def acquire(reading: NodeReading) -> Iterator[Finding]:
    """A card can be acquired; where not, the text says whose fault it is."""
    for result, component in _results(reading, ACQUIRE):
        if result.passed is not False:
            continue
        known = next((each for each in _ACQUIRE if re.search(each[0], result.message, re.I)), None)
        if known is None:
            said = f"a card could not be acquired: {result.message}"
            yield Finding("acquire", component, NODE_FAULT, ERROR, RELOAD, said)
        else:
            _pattern, kind, action, wording = known
            yield Finding("acquire", component, kind, ERROR, action, f"{wording}: {result.message}")


def qualification(reading: NodeReading) -> Iterator[Finding]:
    """Every mode of hl_qual passes. One that gave no result is the check's own error."""
    for result, component in _results(reading, QUAL):
        mode = result.name.partition(" ")[2]
        if result.passed is False:
            said = f"{result.name} failed: {result.message or 'no reason was printed'}"
            yield Finding(f"hl-qual:{mode}", component, NODE_FAULT, CRITICAL, ISOLATE, said)
        elif result.passed is None:
            said = f"{result.name} gave no result: {result.message or 'nothing was printed'}"
            yield Finding(f"hl-qual:{mode}", component, CHECK_ERROR, ERROR, "none", said)


def collectives(reading: NodeReading) -> Iterator[Finding]:
    """Bandwidth of the collectives on one node, against the board's floors."""
    board = next((each for each in (find(card.name) for card in reading.cards) if each is not None), None)
    for result, component in _results(reading, COLLECTIVES):
        if result.passed is None:
            yield Finding(
                "collective", component, CHECK_ERROR, ERROR, "none", f"hccl_demo gave no figure: {result.message}"
            )
        for name, figure in sorted(result.figures.items()):
            floor = board.floors_gb_s.get(name) if board else None
            if floor is not None and figure < floor:
                said = f"{name} reached {figure:.1f} GB/s where {floor:.0f} is the board's floor"
                yield Finding(f"collective:{name}", component, NODE_FAULT, ERROR, ISOLATE, said)
