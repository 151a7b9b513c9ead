"""95 % intervals of a median time, and of the ratio of two.

Steps that follow each other share what the machine does meanwhile, so that they are no independent samples. Independent
are, as far as one run can have it, the medians of rounds that are apart in time. Of these logarithms are taken, as
times are ratios, and the interval is Student's; for a ratio Welch's, whose two sides may scatter differently (Welch,
"The generalization of 'Student's' problem", Biometrika 34, 1947).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, variance
from typing import NamedTuple

BLOCKS = 5
"""Parts into which the steps of a single round are taken: the interval then tells of this round alone."""
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A middle and the ends of its 95 % interval."""

    low: float
    middle: float
    high: float

    @property
    def comparison(self) -> str:
        """Of a ratio of rates, new to old."""
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "no difference shown"


def median_interval(rounds: Sequence[Sequence[float]]) -> Interval:
    """Geometric mean of the rounds' median times, in their unit, with its interval; 0 to infinity with fewer than two.

    >>> [round(value, 3) for value in median_interval([[1.0], [1.1], [0.9]])]
    [0.777, 0.997, 1.279]
    """
    logs = _logs(rounds)
    middle = fmean(logs)
    if len(logs) < 2:
        return Interval(0.0, math.exp(middle), math.inf)
    half = t_quantile(len(logs) - 1) * math.sqrt(variance(logs) / len(logs))
    return Interval(*(math.exp(value) for value in (middle - half, middle, middle + half)))


def ratio_interval(old: Sequence[Sequence[float]], new: Sequence[Sequence[float]]) -> Interval:
    """How many times as fast the new one is: old time over new time; 0 to infinity with fewer than two rounds of one.

    >>> ratio_interval([[2.0], [2.0]], [[1.0], [1.0]])
    Interval(low=2.0, middle=2.0, high=2.0)
    """
    one, other = _logs(old), _logs(new)
    middle = fmean(one) - fmean(other)
    if min(len(one), len(other)) < 2:
        return Interval(0.0, math.exp(middle), math.inf)
    parts = [variance(logs) / len(logs) for logs in (one, other)]
    if sum(parts) == 0:
        return Interval(*[math.exp(middle)] * 3)
    freedom = sum(parts) ** 2 / sum(part**2 / (len(logs) - 1) for part, logs in zip(parts, (one, other), strict=True))
    half = t_quantile(freedom) * math.sqrt(sum(parts))
    return Interval(*(math.exp(value) for value in (middle - half, middle, middle + half)))


def t_quantile(freedom: float) -> float:
    """The 97.5th percentile of Student's distribution with this many degrees of freedom, which may be a fraction.

    >>> [round(t_quantile(freedom), 3) for freedom in (1, 2, 4, 8, 30)]
    [12.706, 4.303, 2.776, 2.306, 2.042]
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = 0.0, 2.0
    while _upper_tail(high, freedom) > tail:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _upper_tail(middle, freedom) > tail else (low, middle)
    return (low + high) / 2


def _upper_tail(t: float, freedom: float) -> float:
    """P(T > t), by Simpson's rule over the angle: with t = sqrt(v) tan(a) the density is cos(a)^(v - 1) over a."""
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    begin, pieces = math.atan(t / math.sqrt(freedom)), 400
    width = (math.pi / 2 - begin) / pieces
    total = 0.0
    for index in range(pieces + 1):
        weight = 1 if index in (0, pieces) else 4 if index % 2 else 2
        total += weight * max(math.cos(begin + index * width), 0.0) ** (freedom - 1)
    return constant * total * width / 3


def _logs(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Logarithms of what is taken as independent: the rounds' medians, or those of the parts of a single round."""
    parts: list[Sequence[float]] = list(rounds)
    if len(parts) == 1 and len(parts[0]) >= BLOCKS:
        times, count = parts[0], len(parts[0])
        parts = [times[count * index // BLOCKS : count * (index + 1) // BLOCKS] for index in range(BLOCKS)]
    return [math.log(median(part)) for part in parts]
