"""Is one configuration better than another? Both are run in turn, so that what else the machine does hits both."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2)."""


@dataclass(frozen=True)
class Ratio:
    """How many times as good one is as another, with a 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def is_better(self) -> bool:
        """Does the whole interval lie above 1?"""
        return self.low > 1

    def __str__(self) -> str:
        return f"{self.ratio:.3f} (95 % interval {self.low:.3f} to {self.high:.3f}, {self.pairs} pairs)"


def ratio(pairs: Sequence[tuple[float, float]], maximise: bool = True) -> Ratio | None:
    """Of pairs (new, old), measured one after the other; None with fewer than two. Above 1 is better.

    The geometric mean of the ratios, with Student's interval of their logarithms.

    Example:
        >>> print(ratio([(120.0, 100.0), (132.0, 110.0), (126.0, 105.0)]))
        1.200 (95 % interval 1.200 to 1.200, 3 pairs)
    """
    if len(pairs) < 2:
        return None
    logs = [math.log(new / old) * (1 if maximise else -1) for new, old in pairs]
    quantile = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1]
    mean, half = statistics.fmean(logs), quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs))
