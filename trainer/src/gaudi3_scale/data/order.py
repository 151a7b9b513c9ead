"""The order of samples: a pure function of the seed and a position, the same on every node and library version.

A keyed Feistel network permutes the indices without a table, so that any position can be asked for at once: to resume
is to start from the number of samples consumed, and neither memory nor start-up grows with the data.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
ROUNDS = 4
SPLIT_KEY = 0x6A09E667


def permute(indices: Indices, size: int, key: int) -> Indices:
    """Where a permutation of range(size), chosen by the key, sends each index."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    values = indices.astype(np.uint64)
    pending = np.arange(values.size)
    while pending.size:  # the network permutes a power of four >= size: walk on until inside
        values[pending] = _network(values[pending], np.uint64(half), mask, key)
        pending = pending[values[pending] >= size]
    return values.astype(np.int64)


def _network(values: npt.NDArray[np.uint64], half: np.uint64, mask: np.uint64, key: int) -> npt.NDArray[np.uint64]:
    left, right = values >> half, values & mask
    for number in range(ROUNDS):
        mixed = right + np.uint64((key * ROUNDS + number) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        left, right = right, left ^ ((mixed ^ (mixed >> np.uint64(31))) & mask)
    return (left << half) | right


class SampleOrder:
    """Which block is the n-th training sample, over endless epochs; the blocks after those are held out."""

    def __init__(self, train_size: int, validation_size: int, seed: int) -> None:
        """Blocks 0 to train_size - 1 are trained on, the next validation_size are held out."""
        self.train_size = train_size
        self.validation_size = validation_size
        self.blocks = train_size + validation_size
        self._seed = seed

    def validation(self, count: int | None = None) -> Indices:
        """The first `count` held-out blocks (all of them without it); they do not depend on the seed."""
        count = self.validation_size if count is None else min(count, self.validation_size)
        return np.arange(self.train_size, self.train_size + count, dtype=np.int64)

    def train(self, start: int, count: int) -> Indices:
        """The blocks of training samples start .. start + count - 1; every epoch sees each block once."""
        return self.at(np.arange(start, start + count, dtype=np.int64))

    def at(self, positions: Indices) -> Indices:
        """The blocks of these training samples."""
        epochs, within = np.divmod(positions, self.train_size)
        result = np.empty(len(positions), dtype=np.int64)
        for epoch in np.unique(epochs):
            chosen = epochs == epoch
            key = (self._seed << 24) + int(epoch) + 1
            result[chosen] = permute(within[chosen], self.train_size, key)
        return result
