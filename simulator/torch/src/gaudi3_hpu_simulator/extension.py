"""The C++ part of the device, once per process."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

from gaudi3_hpu_simulator import cards, operations
from gaudi3_hpu_simulator.strictness import states


@cache
def extension() -> Any:
    """The C++ part, loaded and told which cards there are."""
    import torch  # noqa: F401  # its libraries have to be there first

    core: Any = importlib.import_module("gaudi3_hpu_simulator._C")
    rules = states()
    core.set_rules(rules)
    operations.choose(core)
    found = cards.find()
    machine = core.Machine()
    machine.cards = [core.Card(**vars(card)) for card in found.cards]
    machine.absent, machine.folder, machine.reset_seconds = found.absent, found.folder, found.reset_seconds
    machine.one_holder = rules["card-has-one-holder"]
    machine.modules_choose = rules["module-chooses-card"]
    machine.operational_only = rules["card-must-be-operational"]
    machine.resets = rules["card-resets-after-unclean-death"]
    core.load(
        machine,
        found.memory,
        heeds_host=rules["host-memory-bounds-card"],
        one_index=rules["index-is-zero"],
        kernel_path=rules["operations-need-kernel-path"] and _asks_for_kernels(cards.on_node()),
    )
    return core


def _asks_for_kernels(on_node: bool) -> bool:
    """Whether GC_KERNEL_PATH matters here: on a node, and wherever the variable is set."""
    return on_node or "GC_KERNEL_PATH" in os.environ
