"""Few sequence lengths instead of many: pad to buckets, and choose buckets that pad least.

A device that compiles a graph per input shape compiles once per bucket instead of once per length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gaudi3_scale.errors import ConfigError


@dataclass(frozen=True)
class Padding:
    """What buckets did to the batches they saw."""

    tokens: int
    """Before padding."""
    padded: int
    """After."""
    lengths: int
    """Distinct lengths that came."""
    shapes: int
    """Distinct lengths that went."""

    @property
    def waste(self) -> float:
        """Share of what is computed that is padding."""
        return 1 - self.tokens / self.padded if self.padded else 0.0

    def __str__(self) -> str:
        return f"{self.lengths} lengths became {self.shapes}; {self.waste:.1%} of the tokens computed are padding"


@dataclass
class SequenceBuckets:
    """Pads the last dimension of token tensors (B, T) up to the next bucket.

    Args:
        lengths: the buckets, ascending.
        values: padding by the name of the tensor; names that are not given are padded with 0.
    """

    lengths: Sequence[int]
    values: Mapping[str, int] = field(default_factory=lambda: {"labels": -100})
    _tokens: int = field(default=0, init=False)
    _padded: int = field(default=0, init=False)
    _seen: set[int] = field(default_factory=set, init=False)
    _made: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be buckets."""
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths)) or self.lengths[0] < 1:
            raise ConfigError(f"sequence_buckets is {list(self.lengths)}: give ascending lengths of at least 1.")

    def bucket(self, length: int) -> int:
        """The smallest bucket that holds this many tokens."""
        place = bisect_left(self.lengths, length)
        if place == len(self.lengths):
            raise ConfigError(
                f"A sequence of {length} tokens is longer than the largest bucket, {self.lengths[-1]}: cut it, or add "
                f"a bucket of at least {length}."
            )
        return self.lengths[place]

    def pad(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The batch with its tensors (B, T) padded to one bucket, and an `attention_mask` if it had none.

        All two-dimensional tensors must have the same T; others pass as they are.
        """
        import torch
        from torch.nn.functional import pad

        rows = {name: each for name, each in batch.items() if isinstance(each, torch.Tensor) and each.ndim == 2}
        lengths = {each.shape[1] for each in rows.values()}
        if len(lengths) != 1:
            raise ConfigError(
                f"The batch has tensors of lengths {sorted(lengths)}: bucketing needs tensors (B, T) of one T."
            )
        (length,) = lengths
        target = self.bucket(length)
        first = next(iter(rows.values()))
        if "attention_mask" not in rows:
            rows["attention_mask"] = torch.ones(first.shape, dtype=torch.int64, device=first.device)
        self._tokens += len(first) * length
        self._padded += len(first) * target
        self._seen.add(length)
        self._made.add(target)
        padded = {name: pad(each, (0, target - length), value=self.values.get(name, 0)) for name, each in rows.items()}
        return {**batch, **padded}

    def report(self) -> Padding:
        """What was padded so far."""
        return Padding(self._tokens, self._padded, len(self._seen), len(self._made))


def best_buckets(lengths: Mapping[int, int] | Sequence[int], count: int, multiple: int = 1) -> list[int]:
    """At most `count` buckets, multiples of `multiple`, with the fewest padded tokens for these lengths.

    Exact, by dynamic programming over the distinct lengths n: O(count * n^2).

    Args:
        lengths: length -> how often it occurs, or the lengths themselves.
        count: most buckets.
        multiple: every bucket is a multiple of it.
    """
    if count < 1 or multiple < 1:
        raise ConfigError(f"{count} buckets of multiples of {multiple} were asked for: both must be at least 1.")
    occurs: Counter[int] = Counter(lengths)
    if not occurs:
        return []
    rounded: Counter[int] = Counter()
    for length, times in occurs.items():
        rounded[-(-length // multiple) * multiple] += times
    sizes = sorted(rounded)
    total = [0]
    for size in sizes:
        total.append(total[-1] + rounded[size])
    # cost[j]: tokens computed for the j shortest lengths with the buckets allowed so far, the last being sizes[j - 1]
    cost = [0.0] + [total[j] * sizes[j - 1] for j in range(1, len(sizes) + 1)]
    cuts: list[list[int]] = []
    for _ in range(1, min(count, len(sizes))):
        better, cut = list(cost), [0] * len(cost)
        for j in range(1, len(cost)):
            options = [cost[i] + (total[j] - total[i]) * sizes[j - 1] for i in range(1, j)]
            if options and min(options) < cost[j]:
                cut[j] = 1 + options.index(min(options))
                better[j] = min(options)
        cost = better
        cuts.append(cut)
    buckets, end = [], len(sizes)
    for cut in reversed(cuts):
        if cut[end]:
            buckets.append(sizes[end - 1])
            end = cut[end]
    return sorted({*buckets, sizes[end - 1]})
