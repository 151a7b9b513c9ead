# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_pci_facts answered of a node, read on the controller: the node may answer anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._kinds import count, exact
from .._printable import LONGEST, printable
from .._refusal import Refusal


@dataclass(frozen=True)
class BusAnswer:
    """The cards on a node's PCI bus."""

    card_count: int
    generation: str | None
    iommu_problem: str | None

    @classmethod
    def of(cls, facts: object) -> BusAnswer:
        """From ``ansible_facts.gaudi_pci``; ``Refusal`` names what is odd, within a sentence."""
        if not isinstance(facts, Mapping):
            raise Refusal(f"gaudi_pci is {printable(facts, 60)}")
        if not facts:
            raise Refusal("gaudi_pci is missing")
        found = count(facts.get("card_count"))
        if found is None or found > 1024:
            raise _odd(facts, "card_count")
        cards = facts.get("cards")
        if not isinstance(cards, (list, tuple)) or not all(isinstance(card, Mapping) for card in cards):
            raise _odd(facts, "cards")
        for card in cards:
            _line(card, "iommu", "cards.iommu")
        return cls(found, _line(facts, "generation"), _line(facts, "iommu_problem"))


def _line(given: Mapping[str, Any], name: str, where: str = "") -> str | None:
    """A text of one printable line, or null; never missing."""
    value = exact(given.get(name), LONGEST)
    if value is None and not (name in given and given[name] is None):
        raise _odd(given, name, where)
    return value


def _odd(given: Mapping[str, Any], name: str, where: str = "") -> Refusal:
    value = printable(repr(given[name]), 60) if name in given else "missing"
    return Refusal(f"gaudi_pci.{where or name} is {value}")


def bus_answers(facts: Mapping[str, object]) -> dict[str, Any]:
    """By the facts of each node: ``bare`` nodes have no card, and of ``odd`` ones the answer cannot be read."""
    bare, odd = [], {}
    for node, given in facts.items():
        try:
            if BusAnswer.of(given).card_count == 0:
                bare.append(node)
        except Refusal as error:
            odd[node] = str(error).rstrip(".")
    return {"bare": bare, "odd": list(odd), "why": next(iter(odd.values()), "")}
