"""What follows from a batch: accumulation that keeps the samples per step, and the learning rate."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_scale.batch.schedule import RULES
from gaudi3_scale.errors import ConfigError


@dataclass(frozen=True)
class Step:
    """How an optimizer step is made up."""

    micro_batch: int
    accumulation: int
    samples: int
    """Of all processes."""


def keep_samples(largest: int, wanted: int, world_size: int) -> Step:
    """The fewest forward passes that make a step of exactly `wanted` samples, of at most `largest` each.

    Raises ConfigError where the processes cannot share them evenly.

    >>> keep_samples(largest=12, wanted=64, world_size=2)
    Step(micro_batch=8, accumulation=4, samples=64)
    """
    if wanted % world_size:
        raise ConfigError(
            f"train.global_batch_size is {wanted}, which {world_size} process(es) cannot share evenly: give a multiple "
            "of their number."
        )
    each = wanted // world_size
    micro = next(size for size in range(min(largest, each), 0, -1) if each % size == 0)
    return Step(micro, each // micro, wanted)


def scaled_rate(rate: float, samples: int, reference: int, rule: str) -> float:
    """The learning rate for steps of `samples`, where `rate` was chosen for steps of `reference`.

    linear: Goyal et al., "Accurate, Large Minibatch SGD", 2017. square_root: for Adam, Malladi et al., "On the SDEs
    and Scaling Rules for Adaptive Gradient Algorithms", 2022. none: as it is.

    >>> scaled_rate(1e-3, samples=256, reference=64, rule="square_root")
    0.002
    """
    return rate * RULES[rule](samples / reference)
