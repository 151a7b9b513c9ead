"""Several sources in fixed proportions: which of them the n-th sample is from is a function of n alone.

Of the first n samples, each source has its share of n to within less than one sample, whatever n is. That is
apportionment in time: the j-th sample of a source with W of every P samples is due after floor(j P / W) and before
ceil((j + 1) P / W), and taking the earliest of those due meets all these limits (Steiner and Yeomans, "Level Schedules
for Mixed-Model, Just-in-Time Processes", Management Science 39, 1993).
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

from gaudi3_scale.data.shards import Corpus, identity
from gaudi3_scale.data.stream import Positions
from gaudi3_scale.errors import ConfigError

LONGEST = 100_000
"""Samples after which the pattern repeats, at most."""


class Turns:
    """Which source has its turn at each sample, and which of its own samples that is."""

    def __init__(self, weights: Sequence[float]) -> None:
        """ConfigError where the weights have no common denominator that is small enough."""
        exact = [Fraction(str(weight)) for weight in weights]
        whole = [int(each * lcm(*(f.denominator for f in exact))) for each in exact]
        shares = [each // gcd(*whole) for each in whole]
        if sum(shares) > LONGEST:
            raise ConfigError(
                f"data.mixture has the weights {', '.join(map(str, weights))}, whose proportions repeat after "
                f"{sum(shares):,} samples and may after {LONGEST:,} at most: round them."
            )
        self.period = sum(shares)
        self.shares = shares
        self.pattern = np.array(_schedule(shares), dtype=np.int64)
        self._within = np.zeros(self.period, dtype=np.int64)
        for number in range(len(shares)):
            self._within[self.pattern == number] = np.arange(shares[number])

    def at(self, positions: Positions) -> tuple[Positions, Positions]:
        """Source, and number among its own samples, of each of these samples."""
        rounds, place = np.divmod(positions, self.period)
        sources = self.pattern[place]
        return sources, rounds * np.array(self.shares)[sources] + self._within[place]


def _schedule(shares: list[int]) -> list[int]:
    period = sum(shares)
    waiting = [(0, number, 0) for number in range(len(shares))]  # released at, source, its sample
    heapq.heapify(waiting)
    due: list[tuple[int, int, int]] = []
    order = []
    for slot in range(period):
        while waiting and waiting[0][0] <= slot:
            _, number, sample = heapq.heappop(waiting)
            heapq.heappush(due, (-(-(sample + 1) * period // shares[number]), number, sample))
        _, number, sample = heapq.heappop(due)
        order.append(number)
        if sample + 1 < shares[number]:
            heapq.heappush(waiting, ((sample + 1) * period // shares[number], number, sample + 1))
    return order


@dataclass(frozen=True)
class Mixture:
    """Several corpora and their weights; tokens and ids are of one tokenizer."""

    parts: tuple[Corpus, ...]
    weights: tuple[float, ...]

    @property
    def source(self) -> str:
        """The sources with their shares."""
        total = sum(self.weights)
        return ", ".join(
            f"{100 * w / total:.4g} % {part.source}" for part, w in zip(self.parts, self.weights, strict=True)
        )

    @property
    def size(self) -> int:
        """Tokens in all."""
        return sum(part.size for part in self.parts)

    @property
    def documents(self) -> int:
        """Documents in all."""
        return sum(part.documents for part in self.parts)

    @property
    def vocabulary(self) -> int:
        """Ids are smaller than this."""
        return self.parts[0].vocabulary

    @property
    def mask(self) -> int | None:
        """Id that stands for a masked token."""
        return self.parts[0].mask

    @property
    def unit(self) -> str:
        """What a token is."""
        return self.parts[0].unit

    @property
    def sha256(self) -> str:
        """Of the parts and their weights."""
        about = [[identity(part), weight] for part, weight in zip(self.parts, self.weights, strict=True)]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """What must be equal on all nodes."""
        parts = [{**identity(part), "weight": weight} for part, weight in zip(self.parts, self.weights, strict=True)]
        return {"size": self.size, "sha256": self.sha256, "mixture": parts}
