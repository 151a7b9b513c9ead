"""Windows of the packed tokens, fetched many at a time, and the order in which each rank gets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.masking import HELD_OUT, Masking
from gaudi3_scale.data.order import SampleOrder
from gaudi3_scale.data.shards import Corpus
from gaudi3_scale.errors import ConfigError

AHEAD = 4096  # samples whose order is computed at once
BASELINE_TOKENS = 2**24


class Samples:
    """Samples of sequence_length + 1 tokens; a target is the token after its input, so neighbours share one.

    Documents are packed one after the other: a sample may begin within one and end within the next.
    """

    def __init__(
        self, corpus: Corpus, config: DataConfig, sequence_length: int, seed: int, masking: Masking | None = None
    ) -> None:
        """With `masking` a sample is what a masked language model needs instead."""
        self.sequence_length = sequence_length
        self._corpus = corpus
        self._masking = masking
        blocks = (corpus.size - 1) // sequence_length
        if blocks < 2:
            raise ConfigError(
                f"data.source {config.source!r} has {corpus.size} {corpus.unit}s, fewer than two samples of "
                f"{sequence_length + 1}: give more text or a smaller model.sequence_length."
            )
        self.order = SampleOrder(blocks, config.validation_fraction, seed)
        self._arrays = corpus.arrays()
        self._ends = np.cumsum([len(array) for array in self._arrays])
        self._windows = [self._whole(number) for number in range(len(self._arrays))]

    def fetch(self, blocks: npt.NDArray[np.int64], positions: npt.NDArray[np.int64] | None = None) -> torch.Tensor:
        """The samples of these blocks at once, int64.

        (B, T + 1) tokens; with masking (B, 2, T) inputs and labels, where the positions in the order of samples decide
        what is masked, and without them the blocks themselves.
        """
        tokens = self._tokens(blocks)
        if self._masking is None:
            return torch.from_numpy(tokens)
        keys = blocks + (HELD_OUT << 32) if positions is None else positions
        return torch.from_numpy(self._masking.apply(tokens[:, :-1], keys))

    def train(self, start: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Blocks and positions of training samples start .. start + count - 1."""
        return self.order.train(start, count), np.arange(start, start + count, dtype=np.int64)

    def baseline(self) -> float:
        """Entropy of the held-out tokens' frequencies, nats per token: the best loss without looking at context."""
        counts = np.zeros(self._corpus.vocabulary, dtype=np.int64)
        blocks = self.order.validation(max(AHEAD, BASELINE_TOKENS // self.sequence_length))
        for start in range(0, len(blocks), AHEAD):
            tokens = self._tokens(blocks[start : start + AHEAD])[:, 1:]
            counts += np.bincount(tokens.ravel(), minlength=len(counts))
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    def _whole(self, number: int) -> tuple[int, npt.NDArray[Any]]:
        """First block that begins in a shard, and a view of all windows that lie in it, (n, T + 1), overlapping."""
        array, length = self._arrays[number], self.sequence_length
        begin = int(self._ends[number]) - len(array)
        first = -(-begin // length)
        offset = first * length - begin
        count = max(0, (len(array) - offset - 1) // length)
        strides = (length * array.itemsize, array.itemsize)
        view = np.lib.stride_tricks.as_strided(array[offset:], (count, length + 1), strides, writeable=False)
        return first, view

    def _tokens(self, blocks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """(B, T + 1) tokens; one indexing per shard, which is where the speed comes from."""
        if len(self._arrays) == 1:
            return self._windows[0][1][blocks].astype(np.int64)
        result = np.empty((len(blocks), self.sequence_length + 1), dtype=np.int64)
        homes = np.searchsorted(self._ends, blocks * self.sequence_length, side="right")
        for home in np.unique(homes):
            first, view = self._windows[home]
            here = np.flatnonzero(homes == home)
            local = blocks[here] - first
            inside = local < len(view)
            result[here[inside]] = view[local[inside]]
            for index in here[~inside]:
                result[index] = self._across(int(home), int(blocks[index]) * self.sequence_length)
        return result

    def _across(self, home: int, start: int) -> npt.NDArray[np.int64]:
        """A window that begins in one shard and ends in a later one."""
        parts: list[npt.NDArray[Any]] = []
        missing = self.sequence_length + 1
        start -= int(self._ends[home]) - len(self._arrays[home])
        while missing:
            part = self._arrays[home][start : start + missing]
            parts.append(part)
            missing -= len(part)
            home, start = home + 1, 0
        return np.concatenate(parts).astype(np.int64)


class RankBatches:
    """This rank's micro-batches from a global position on, without end.

    The samples of one micro-step of all ranks are consecutive in the global order, so that the order of a job does not
    depend on how many processes share the work, as long as they take the same number of samples per step together.
    """

    def __init__(
        self, samples: Samples, start: int, micro_batch: int, rank: int, world_size: int, every: int = 1
    ) -> None:
        """With `every` only each n-th micro-batch, the first one included."""
        self._samples = samples
        self._start = start
        self._micro_batch = micro_batch
        self._offset = rank * micro_batch
        self._stride = micro_batch * world_size * every

    def __iter__(self) -> Iterator[torch.Tensor]:
        ahead = max(1, AHEAD // self._stride) * self._stride
        start = self._start
        while True:
            blocks, positions = self._samples.train(start, ahead)
            for first in range(self._offset, ahead, self._stride):
                chosen = slice(first, first + self._micro_batch)
                yield self._samples.fetch(blocks[chosen], positions[chosen])
            start += ahead
