"""Random numbers of the card. It has a generator of its own, which torch.manual_seed and torch.seed seed, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gaudi3_hpu_simulator.extension import extension
from habana_frameworks.torch.hpu._utils import one_card

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

default_generators: list[torch.Generator] = [extension().default_generator()]


def get_rng_state(device: Any = "hpu") -> torch.Tensor:
    """State of the card's generator: a byte tensor on the CPU."""
    return default_generators[one_card(device)].get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "hpu") -> None:
    """Go back to a state from `get_rng_state`."""
    default_generators[one_card(device)].set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The state of the one generator, in a list."""
    return [get_rng_state(0)]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Go back to a state from `get_rng_state_all`."""
    if len(new_states) != 1:
        raise RuntimeError(f"A process has one HPU, but {len(new_states)} random states were given.")
    set_rng_state(new_states[0], 0)


def manual_seed(seed: int) -> torch.Generator:
    """Seed the card's generator."""
    return default_generators[0].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """As `manual_seed`: there is one card."""
    manual_seed(seed)


def seed() -> int:
    """Seed the card's generator with something that was not there before, and return it."""
    return default_generators[0].seed()


def seed_all() -> None:
    """As `seed`: there is one card."""
    seed()


def initial_seed() -> int:
    """The seed of the card's generator."""
    return default_generators[0].initial_seed()
