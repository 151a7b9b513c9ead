"""Random numbers of the cards. Each has a generator of its own; they are seeded by torch.manual_seed, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gaudi3_hpu_simulator.load import extension


def _generator(device: Any = "hpu") -> torch.Generator:
    from habana_frameworks.torch.hpu import _index

    generator: torch.Generator = extension().default_generator(_index(device))
    return generator


def _count() -> int:
    count: int = extension().device_count()
    return count


def get_rng_state(device: Any = "hpu") -> torch.Tensor:
    """State of a card's generator: a byte tensor on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "hpu") -> None:
    """Go back to a state from `get_rng_state`."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """States of all cards' generators."""
    return [get_rng_state(index) for index in range(_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Go back to states from `get_rng_state_all`."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the current card's generator."""
    _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all cards' generators."""
    for index in range(_count()):
        _generator(index).manual_seed(seed)


def seed() -> None:
    """Seed the current card's generator with something that was not there before."""
    _generator().seed()


def seed_all() -> None:
    """Seed all cards' generators with the same number, which was not there before."""
    if _count():
        manual_seed_all(_generator(0).seed())


def initial_seed() -> int:
    """The seed of the current card's generator."""
    return _generator().initial_seed()


def __getattr__(name: str) -> list[torch.Generator]:
    if name == "default_generators":  # one, because a process has one device
        return [_generator(0)]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
