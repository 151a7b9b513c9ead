"""Windows of the packed tokens, fetched many at a time, and the order in which each rank gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.holdout import split
from gaudi3_scale.data.masking import HELD_OUT, IGNORED, Masking
from gaudi3_scale.data.mixture import Mixture, Turns
from gaudi3_scale.data.order import SampleOrder
from gaudi3_scale.data.shards import Corpus
from gaudi3_scale.data.starts import Starts
from gaudi3_scale.data.stream import Array, Positions, Stream, windows_of
from gaudi3_scale.errors import ConfigError

AHEAD = 4096  # samples whose order is computed at once
BASELINE_TOKENS = 2**24


class _Part:
    """The windows of one corpus: blocks 0 .. train_size - 1 of what is trained on, then those of what is held out."""

    def __init__(self, corpus: Corpus, config: DataConfig, length: int, held_out: int, seed: int) -> None:
        self.corpus = corpus
        self.length = length
        blocks = (corpus.size - 1) // length
        if blocks < 2:
            raise ConfigError(
                f"data.source {corpus.source!r} has {corpus.size} {corpus.unit}s, fewer than two samples of "
                f"{length + 1}: give more text or a smaller model.sequence_length."
            )
        self._starts = Starts(corpus)
        self._arrays = corpus.arrays()
        self._views = windows_of(self._arrays, length + 1)
        self._learnt = corpus.learnt() if corpus.partly_learnt else []
        self._learnt_views = windows_of(self._learnt, length + 1)
        lengths = [shard.tokens for shard in corpus.shards]
        pieces = split(corpus, self._starts, length, config.validation_fraction, held_out)
        self._train, self._held_out = (Stream(lengths, each, length + 1) for each in pieces)
        self.order = SampleOrder(self._train.blocks, min(held_out, self._held_out.blocks), seed)

    def tokens(self, blocks: Positions) -> Positions:
        """(B, T + 1)."""
        return self._read(blocks, self._views, self._arrays)

    def labels(self, blocks: Positions, tokens: Positions) -> Positions:
        """(B, T): the token after each, IGNORED where that one is only read."""
        labels = tokens[:, 1:]
        if not self._learnt:
            return labels
        return np.where(self._read(blocks, self._learnt_views, self._learnt)[:, 1:] != 0, labels, IGNORED)

    def borders(self, blocks: Positions) -> npt.NDArray[np.bool_]:
        """(B, T + 1): is this the first token of a document?"""
        result = np.zeros((len(blocks), self.length + 1), dtype=np.bool_)
        for row, block in enumerate(blocks.tolist()):
            held_out = block >= self.order.train_size
            stream = self._held_out if held_out else self._train
            start = (block - self.order.train_size * held_out) * self.length
            for offset, begin, count in stream.ranges(start):
                result[row, self._starts.between(begin, begin + count) - begin + offset] = True
        return result

    def _read(self, blocks: Positions, views: list[Array | None], arrays: list[Array]) -> Positions:
        size = self.order.train_size
        held_out = blocks >= size
        if not held_out.any():
            return self._train.read(views, arrays, blocks * self.length)
        result = np.empty((len(blocks), self.length + 1), dtype=np.int64)
        result[held_out] = self._held_out.read(views, arrays, (blocks[held_out] - size) * self.length)
        if not held_out.all():
            result[~held_out] = self._train.read(views, arrays, blocks[~held_out] * self.length)
        return result


class MixedOrder:
    """The order over several parts, whose blocks are numbered one after the other."""

    def __init__(self, orders: list[SampleOrder], turns: Turns) -> None:
        self._orders = orders
        self._turns = turns
        self.bases = np.cumsum([0, *(order.blocks for order in orders)])
        self.blocks = int(self.bases[-1])
        # Until the source that lasts the shortest, by its share, has been seen once.
        self.train_size = min(o.train_size * turns.period // s for o, s in zip(orders, turns.shares, strict=True))
        self.train_size = max(1, self.train_size)
        self.validation_size = sum(order.validation_size for order in orders)

    def train(self, start: int, count: int) -> Positions:
        """The blocks of training samples start .. start + count - 1."""
        sources, numbers = self._turns.at(np.arange(start, start + count, dtype=np.int64))
        result = np.empty(count, dtype=np.int64)
        for source, order in enumerate(self._orders):
            here = sources == source
            result[here] = order.at(numbers[here]) + self.bases[source]
        return result

    def validation(self, count: int | None = None) -> Positions:
        """The first `count` held-out blocks; the sources take turns by their weights, as long as they have any."""
        blocks: list[int] = []
        count = self.validation_size if count is None else min(count, self.validation_size)
        taken = [0] * len(self._orders)
        position = 0
        while len(blocks) < count:
            source = int(self._turns.pattern[position % self._turns.period])
            order, position = self._orders[source], position + 1
            if taken[source] < order.validation_size:
                blocks.append(int(self.bases[source]) + order.train_size + taken[source])
                taken[source] += 1
        return np.array(blocks, dtype=np.int64)


class Ordered(Protocol):
    """What has an order of its own: the samples of one corpus."""

    order: SampleOrder


P = TypeVar("P", bound=Ordered)


def open_parts(
    corpus: Corpus | Mixture, config: DataConfig, seed: int, make: Callable[[Corpus, int, int], P]
) -> tuple[list[P], SampleOrder | MixedOrder, Positions]:
    """Parts of a corpus or mixture, the order over all, and the number of the first block of each.

    `make` is given the corpus of a part, how many samples are held out of it at most, and its seed.
    """
    if not isinstance(corpus, Mixture):
        part = make(corpus, config.validation_samples, seed)
        return [part], part.order, np.array([0])
    total = sum(corpus.weights)
    shares = [max(1, round(config.validation_samples * weight / total)) for weight in corpus.weights]
    parts = [
        make(part, held_out, seed + (number << 40))
        for number, (part, held_out) in enumerate(zip(corpus.parts, shares, strict=True))
    ]
    order = MixedOrder([part.order for part in parts], Turns(corpus.weights))
    return parts, order, order.bases


class Samples:
    """Samples of sequence_length + 1 tokens; a target is the token after its input, so neighbours share one.

    Documents are packed one after the other: a sample may begin within one and end within the next.
    """

    order: SampleOrder | MixedOrder

    def __init__(
        self,
        corpus: Corpus | Mixture,
        config: DataConfig,
        sequence_length: int,
        seed: int,
        masking: Masking | None = None,
    ) -> None:
        """With `masking` a sample is what a masked language model needs instead."""
        self.sequence_length = sequence_length
        self._vocabulary = corpus.vocabulary
        self._masking = masking
        self._documents = config.documents
        self._parts, self.order, self._bases = open_parts(
            corpus, config, seed, lambda part, held_out, own: _Part(part, config, sequence_length, held_out, own)
        )
        self._labelled = self._documents or any(part.corpus.partly_learnt for part in self._parts)

    def fetch(self, blocks: npt.NDArray[np.int64], positions: npt.NDArray[np.int64] | None = None) -> torch.Tensor:
        """The samples of these blocks at once, int64.

        (B, T + 1) tokens; (B, 2, T) inputs and labels where not all tokens are learnt; (B, 3, T) inputs, labels and
        positions within the document with data.documents. With masking (B, 2, T) inputs and labels, where the
        positions in the order of samples decide what is masked, and without them the blocks themselves.
        """
        if self._masking is not None:
            keys = blocks + (HELD_OUT << 32) if positions is None else positions
            return torch.from_numpy(self._masking.apply(self._tokens(blocks)[:, :-1], keys))
        if not self._labelled:
            return torch.from_numpy(self._tokens(blocks))
        result = np.empty((len(blocks), 3 if self._documents else 2, self.sequence_length), dtype=np.int64)
        for part, here, own in self._by_part(blocks):
            tokens = part.tokens(own)
            labels = part.labels(own, tokens)
            if self._documents:
                borders = part.borders(own)
                labels = np.where(borders[:, 1:], IGNORED, labels)  # the end of a document does not tell what is next
                result[here, 2] = _restarting(borders[:, :-1])
            result[here, 0], result[here, 1] = tokens[:, :-1], labels
        return torch.from_numpy(result)

    def train(self, start: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Blocks and positions of training samples start .. start + count - 1."""
        return self.order.train(start, count), np.arange(start, start + count, dtype=np.int64)

    def baseline(self) -> float:
        """Entropy of the held-out tokens' frequencies, nats per token: the best loss without looking at context."""
        counts = np.zeros(self._vocabulary, dtype=np.int64)
        blocks = self.order.validation(max(AHEAD, BASELINE_TOKENS // self.sequence_length))
        for start in range(0, len(blocks), AHEAD):
            for part, _, own in self._by_part(blocks[start : start + AHEAD]):
                labels = part.labels(own, part.tokens(own))
                counts += np.bincount(labels[labels != IGNORED], minlength=len(counts))
        if not counts.any():
            return 0.0
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    def _tokens(self, blocks: Positions) -> Positions:
        if len(self._parts) == 1:
            return self._parts[0].tokens(blocks)
        result = np.empty((len(blocks), self.sequence_length + 1), dtype=np.int64)
        for part, here, own in self._by_part(blocks):
            result[here] = part.tokens(own)
        return result

    def _by_part(self, blocks: Positions) -> Iterator[tuple[_Part, Positions, Positions]]:
        """Each part that has any of the blocks: which of them, and their numbers there."""
        homes = np.searchsorted(self._bases, blocks, side="right") - 1
        for home in np.unique(homes):
            here = np.flatnonzero(homes == home)
            yield self._parts[home], here, blocks[here] - self._bases[home]


def _restarting(borders: npt.NDArray[np.bool_]) -> Positions:
    """(B, T): how far each token is from the document's first one, or from the row's if that comes later."""
    index = np.arange(borders.shape[1], dtype=np.int64)
    result: Positions = index - np.maximum.accumulate(np.where(borders, index, 0), axis=1)
    return result


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
