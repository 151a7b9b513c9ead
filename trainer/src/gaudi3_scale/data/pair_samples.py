"""Pairs of answers as samples: each is two rows of its own, the preferred answer's and the other one's."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.encode_pairs import ANSWER, SECOND
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.data.mixture import Mixture
from gaudi3_scale.data.order import SPLIT_KEY, SampleOrder, permute
from gaudi3_scale.data.samples import Samples, open_parts
from gaudi3_scale.data.shards import Corpus
from gaudi3_scale.data.starts import Starts
from gaudi3_scale.data.stream import Array
from gaudi3_scale.errors import ConfigError

ROWS = 5
"""Of a sample: inputs and labels of the chosen answer, those of the rejected one, and the number of the pair."""
NUMBER = 4


class _Pairs:
    """The pairs of one corpus: blocks 0 .. train_size - 1 are trained on, those after them are held out."""

    def __init__(self, corpus: Corpus, config: DataConfig, held_out: int, seed: int) -> None:
        self.corpus = corpus
        self._starts = Starts(corpus)
        count = self._starts.documents
        if count < 2:
            raise ConfigError(
                f"data.source {corpus.source!r} has {count} pair, and one has to be held out: give two or more."
            )
        aside = min(held_out, max(1, round(count * config.validation_fraction)), count - 1)
        drawn = permute(np.arange(aside), count, SPLIT_KEY)
        self._documents = np.concatenate([np.setdiff1d(np.arange(count), drawn), drawn])
        self._ends = np.cumsum([shard.tokens for shard in corpus.shards])
        self._tokens = corpus.arrays()
        self._marks = corpus.learnt()
        self.order = SampleOrder(count - aside, aside, seed)

    def rows(self, block: int) -> list[tuple[Array, Array]]:
        """Tokens of the row with the chosen answer, and which of them are of the answer; then of the other row."""
        document = self._documents[[block]]
        begin, end = int(self._starts.at(document)[0]), int(self._starts.at(document + 1)[0])
        tokens, marks = self._read(self._tokens, begin, end), self._read(self._marks, begin, end)
        border = int(np.argmax(marks >= SECOND))
        return [(tokens[here], marks[here] & ANSWER) for here in (slice(0, border), slice(border, None))]

    def longer_than(self, length: int) -> int:
        """Rows that have more tokens."""
        begins = [self._starts.at(np.arange(self._starts.documents + 1))]
        last, before = 0, 0
        for marks in self._marks:
            second = marks >= SECOND
            begins.append(before + np.flatnonzero(second & ~np.concatenate([[last], second[:-1]]).astype(np.bool_)))
            last, before = second[-1], before + len(marks)
        return int((np.diff(np.sort(np.concatenate(begins))) > length).sum())

    def _read(self, arrays: list[Array], begin: int, end: int) -> Array:
        """A part of the corpus, which may go on in the next file."""
        parts = []
        while begin < end:
            home = int(np.searchsorted(self._ends, begin, side="right"))
            before = int(self._ends[home - 1]) if home else 0
            until = min(end, int(self._ends[home]))
            parts.append(arrays[home][begin - before : until - before])
            begin = until
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class PairSamples(Samples):
    """Samples (5, T) int64 of `ROWS`, each row filled up to sequence_length; what does not fit is cut off at its end.

    A pair's number is its place in `order`, by which its reference is found.
    """

    def __init__(self, corpus: Corpus | Mixture, config: DataConfig, sequence_length: int, seed: int) -> None:
        self.sequence_length = sequence_length
        self._pairs, self.order, self._bases = open_parts(
            corpus, config, seed, lambda part, held_out, own: _Pairs(part, config, held_out, own)
        )
        first = corpus.parts[0] if isinstance(corpus, Mixture) else corpus
        self._filler = first.separator

    def fetch(self, blocks: npt.NDArray[np.int64], positions: npt.NDArray[np.int64] | None = None) -> torch.Tensor:
        """The pairs of these blocks, (B, 5, T) int64."""
        length = self.sequence_length
        result = np.empty((len(blocks), ROWS, length), dtype=np.int64)
        result[:, 0:NUMBER:2] = self._filler
        result[:, 1:NUMBER:2] = IGNORED
        result[:, NUMBER] = blocks[:, None]
        homes = np.searchsorted(self._bases, blocks, side="right") - 1
        for place, (home, block) in enumerate(zip(homes.tolist(), blocks.tolist(), strict=True)):
            for side, (tokens, learnt) in enumerate(self._pairs[home].rows(block - int(self._bases[home]))):
                row = tokens[: length + 1].astype(np.int64)
                result[place, 2 * side, : len(row) - 1] = row[:-1]
                result[place, 2 * side + 1, : len(row) - 1] = np.where(learnt[1 : len(row)] != 0, row[1:], IGNORED)
        return torch.from_numpy(result)

    def baseline(self) -> float:
        """The loss of a model that prefers no answer, nats per pair."""
        return math.log(2)

    def cut(self) -> int:
        """Answers whose end does not fit into the context."""
        return sum(each.longer_than(self.sequence_length + 1) for each in self._pairs)
