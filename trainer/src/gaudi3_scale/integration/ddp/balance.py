"""Uneven micro-batches: a slower process takes fewer of a step, and the gradient stays the mean over all samples.

Of a step of `N` micro-batches process `r` of `W` takes `n_r`. Lightning divides each loss by `n_r`, DDP the sum of
gradients by `W`; a factor `n_r W / N` on the loss makes it the sum over all micro-batches divided by `N`, as with even
shares. What differs is the order in which numbers are added. Shares are configured and never change by themselves, so
that a job that goes on repeats its steps exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gaudi3_scale.errors import ConfigError

UNEVEN = 0.87
"""A process slower than this share of the fastest one is worth a word: of 8 micro-batches it should take one less."""


def shares(speeds: Sequence[float], total: int) -> list[int]:
    """How many of `total` micro-batches each process takes, so that the slowest ends as early as can be; each has one.

    >>> shares([1.0, 0.6], 8)
    [5, 3]
    >>> shares([1.0, 1.0, 0.1], 3)
    [1, 1, 1]
    """
    counts = [1] * len(speeds)
    for _ in range(total - len(speeds)):
        first = min(range(len(speeds)), key=lambda rank: ((counts[rank] + 1) / speeds[rank], rank))
        counts[first] += 1
    return counts


def weight(counts: Sequence[int], rank: int) -> float:
    """The factor on this process's loss.

    >>> weight([5, 3], 0), weight([5, 3], 1)
    (1.25, 0.75)
    """
    return counts[rank] * len(counts) / sum(counts)


def advice(speeds: Sequence[float], accumulation: int) -> str | None:
    """A sentence for processes of unequal speed; None if they are about equal.

    >>> advice([1.0, 0.6], 4)
    'rank 1 computes 0.60 times as fast as the fastest: ddp.balance=[5,3] shares a step out evenly in time'
    """
    slowest = min(range(len(speeds)), key=speeds.__getitem__)
    if speeds[slowest] >= UNEVEN:
        return None
    found = f"rank {slowest} computes {speeds[slowest]:.2f} times as fast as the fastest"
    counts = shares(speeds, accumulation * len(speeds))
    if len(set(counts)) == 1:
        return f"{found}: with more and smaller micro-batches, ddp.balance could give it fewer of them"
    return f"{found}: ddp.balance=[{','.join(map(str, counts))}] shares a step out evenly in time"


def check(counts: Sequence[int], world_size: int, accumulation: int) -> None:
    """Refuse shares that are not those of a step of `accumulation` micro-batches on each of `world_size` processes."""
    if sum(counts) != accumulation * world_size:
        raise ConfigError(
            f"ddp.balance is {list(counts)}, {sum(counts)} micro-batches per step, and train.accumulation_steps "
            f"{accumulation} on {world_size} processes are {accumulation * world_size}: make them equal."
        )


class UnevenBatches:
    """This rank's micro-batches from a step's first sample on, without end: consecutive ones of every step."""

    def __init__(self, samples: Any, start: int, micro_batch: int, rank: int, counts: Sequence[int]) -> None:
        """`start` is the number of samples of all steps before."""
        self._samples = samples
        self._start = start
        self._micro_batch = micro_batch
        self._before = sum(counts[:rank]) * micro_batch
        self._mine = counts[rank]
        self._step = sum(counts) * micro_batch

    def __iter__(self) -> Iterator[Any]:
        """Tensors as `Samples.fetch` gives them."""
        start = self._start
        while True:
            blocks, positions = self._samples.train(start, self._step)
            for number in range(self._mine):
                first = self._before + number * self._micro_batch
                chosen = slice(first, first + self._micro_batch)
                yield self._samples.fetch(blocks[chosen], positions[chosen])
            start += self._step
