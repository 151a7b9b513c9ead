"""What interruptions add to the time of a job, and how often it should save a checkpoint.

Failures are taken to come at random (a Poisson process) with the mean time M between two of them; a checkpoint holds
training up for C seconds, and a restart takes R seconds. J. T. Daly, "A higher order estimate of the optimum checkpoint
interval for restart dumps", Future Generation Computer Systems 22 (2006), pages 303-312; J. W. Young, "A first order
approximation to the optimum checkpoint interval", Communications of the ACM 17 (1974), pages 530-531.
"""

from __future__ import annotations

import math


def young_interval_seconds(checkpoint_seconds: float, mean_seconds_between_failures: float) -> float:
    """Time of work between two checkpoints: sqrt(2 C M) (Young)."""
    return math.sqrt(2 * checkpoint_seconds * mean_seconds_between_failures)


def daly_interval_seconds(checkpoint_seconds: float, mean_seconds_between_failures: float) -> float:
    """The same, also where failures come nearly as often as checkpoints: Daly's approximation of higher order.

    >>> round(daly_interval_seconds(5 * 60, 24 * 3600) / 60)
    117

    Never less than a checkpoint's own time where C < 2 M; M itself beyond that.
    """
    stall, mean = checkpoint_seconds, mean_seconds_between_failures
    if stall >= 2 * mean:
        return mean
    share = stall / (2 * mean)
    return math.sqrt(2 * stall * mean) * (1 + math.sqrt(share) / 3 + share / 9) - stall


def optimal_interval_seconds(checkpoint_seconds: float, mean_seconds_between_failures: float) -> float:
    """The interval with the least `expected_seconds`, of which the two above are approximations.

    The least of M e^(R/M) (e^((t+C)/M) - 1) / t is where 1 - t/M = e^(-(t+C)/M), found by halving. Without failures
    there is no reason to save (infinity), without a stall none to wait (1 s).
    """
    if math.isinf(mean_seconds_between_failures):
        return math.inf
    if not checkpoint_seconds:
        return 1.0
    stall, low, high = checkpoint_seconds / mean_seconds_between_failures, 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if 1 - middle > math.exp(-middle - stall):
            low = middle
        else:
            high = middle
    return low * mean_seconds_between_failures


def expected_seconds(
    work_seconds: float,
    interval_seconds: float,
    checkpoint_seconds: float,
    restart_seconds: float,
    mean_seconds_between_failures: float,
) -> float:
    """Mean wall time of this many seconds of work, by Daly's complete model: M e^(R/M) (e^((t+C)/M) - 1) W/t.

    Failures may also meet a checkpoint or a restart. Without failures (M infinite) the checkpoints remain. Raises
    OverflowError where the job would practically never end.
    """
    segments = work_seconds / interval_seconds
    mean = mean_seconds_between_failures
    if math.isinf(mean):
        return work_seconds + segments * checkpoint_seconds
    return (
        mean * math.exp(restart_seconds / mean) * math.expm1((interval_seconds + checkpoint_seconds) / mean) * segments
    )
