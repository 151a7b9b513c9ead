# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The cards of a job, chosen for all of its nodes at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._cards.module_sets import PARTIAL, PROCESSES, SETS, module_sets_of_nodes
from .._refusal import Refusal
from .answers import Offer


def job_modules(offers: Mapping[str, Mapping[str, Any]], allow_partial: bool = False) -> dict[str, Any]:
    """The modules of the cards for every node of a job, and why there are none."""
    read = {name: Offer.of(offer) for name, offer in sorted(offers.items())}
    nodes = {name: offer for name, offer in read.items() if offer is not None and offer.cards is not None}
    if not nodes:
        return {"modules": [], "problem": ""}
    try:
        return {"modules": _modules(nodes, allow_partial), "problem": ""}
    except Refusal as error:
        sentence = str(error)
        # A name stays as it is.
        begins = sentence if sentence.split()[0] in (PROCESSES, *nodes) else sentence[0].upper() + sentence[1:]
        return {"modules": [], "problem": begins}


def _modules(nodes: Mapping[str, Offer], allow_partial: bool) -> list[int]:
    processes = {offer.processes for offer in nodes.values()}
    cards = {name: offer.cards for name, offer in nodes.items()}
    if len(processes) > 1 or (len(set(cards.values())) > 1 and not allow_partial):
        told = ", ".join(f"{name} {count}" for name, count in cards.items())
        raise Refusal(
            f"the nodes of the job have different numbers of cards ({told}) and every node runs as many processes: "
            f"repair the node that lost cards, take it out of the job, or set {PROCESSES} to a number that all have "
            f"and {PARTIAL} to true"
        )
    (count,) = processes
    known = {name: offer.modules for name, offer in nodes.items() if offer.modules is not None}
    if len(known) < len(nodes):  # before the driver is loaded nothing tells the modules apart
        if count not in SETS and not allow_partial:
            raise Refusal(
                f"{PROCESSES} is {count}, where 1, 2, 4 or 8 are supported: set it to one of them, or {PARTIAL} to "
                "true to try what is not supported"
            )
        return []
    free = {name: [module for module in modules if module not in nodes[name].held] for name, modules in known.items()}
    try:
        choice = module_sets_of_nodes(free, count, allow_partial)
    except Refusal:
        choice = module_sets_of_nodes(known, count, allow_partial)
    # One process on one node takes any card that is free when it starts.
    return [] if count == len(nodes) == 1 else list(choice.modules)
