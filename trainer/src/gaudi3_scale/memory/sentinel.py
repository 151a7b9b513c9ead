"""Counts the input shapes a step sees: a device that compiles graphs compiles one for each."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from torch import Tensor

from gaudi3_scale.internals import tree_flatten_with_path
from gaudi3_scale.memory.buckets import best_buckets

log = logging.getLogger(__name__)
Signature = tuple[tuple[str, tuple[int, ...], str], ...]


class ShapeSentinel:
    """Watches the batches of a loop, and says in the log when their shapes multiply.

    Args:
        limit: distinct signatures (names, shapes and dtypes of all tensors) before the first warning; the next ones
            come whenever their number has doubled.
        buckets: how many sequence lengths to suggest.
        multiple: suggested lengths are multiples of it.
    """

    def __init__(self, limit: int = 8, buckets: int = 4, multiple: int = 64) -> None:
        self.steps = 0
        self.signatures: Counter[Signature] = Counter()
        self.lengths: Counter[int] = Counter()
        """Sequences of each length: rows of the first tensor (B, T) of every batch."""
        self._next = limit + 1
        self._buckets = buckets
        self._multiple = multiple

    def observe(self, batch: Any) -> bool:
        """Note a step's input, any nest of tensors; is its signature new?"""
        leaves, _ = tree_flatten_with_path(batch)
        tensors = [(str(path), each) for path, each in leaves if isinstance(each, Tensor)]
        signature = tuple((path, tuple(each.shape), str(each.dtype)) for path, each in tensors)
        new = signature not in self.signatures
        self.steps += 1
        self.signatures[signature] += 1
        rows = next((each for _, each in tensors if each.ndim == 2), None)
        if rows is not None:
            self.lengths[rows.shape[1]] += rows.shape[0]
        if len(self.signatures) >= self._next:
            self._next = 2 * len(self.signatures)
            log.warning("%s", self.report())
        return new

    def suggest(self) -> list[int]:
        """Sequence lengths to pad to, those with the least padding for what was seen."""
        return best_buckets(self.lengths, self._buckets, self._multiple)

    def waste(self, buckets: list[int]) -> float:
        """Share of padding among the tokens computed, had what was seen been padded to these."""
        tokens = sum(length * times for length, times in self.lengths.items())
        padded = sum(min(b for b in buckets if b >= length) * times for length, times in self.lengths.items())
        return 1 - tokens / padded if padded else 0.0

    def report(self) -> str:
        """One sentence: how many shapes, and what would make them fewer."""
        count = len(self.signatures)
        text = f"{count} distinct input shape(s) in {self.steps} step(s)"
        buckets = self.suggest()
        if len(self.lengths) <= len(buckets):
            return f"{text}; bucketing would not make them fewer."
        names = ", ".join(map(str, buckets))
        return (
            f"{text}, each of which a graph-compiling device compiles: sequence buckets {names} would make "
            f"{len(buckets)} of the {len(self.lengths)} lengths, with {self.waste(buckets):.1%} padding."
        )
