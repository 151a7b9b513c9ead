"""Energy of a job, and readings of power that can be true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gaudi3_scale.errors import ConfigError

HIGHEST = 1.3
"""Readings above this many times the card's limit are ignored, as in the alert HpuReadingImpossible."""


@dataclass(frozen=True)
class Power:
    """The mean of what a card drew."""

    mean_watts: float
    used: int
    """Readings that count."""
    dropped: int
    """Readings that cannot be true."""


def screen(readings_watts: Sequence[float], limit_watts: float | None) -> Power:
    """The mean of readings without the impossible ones: not finite, not above 0, or above 1.3 times the card's limit.

    Cards are known to report such values, as 1,900 W (README of paregupt/gaudimon). With no limit, nothing is
    too high.

    >>> screen([610.0, 1900.0, 0.0, 630.0], limit_watts=900)
    Power(mean_watts=620.0, used=2, dropped=2)

    Raises ConfigError where fewer than half of the readings are left.
    """
    highest = math.inf if limit_watts is None else HIGHEST * limit_watts
    good = [watts for watts in readings_watts if math.isfinite(watts) and 0 < watts <= highest]
    if not good or 2 * len(good) < len(readings_watts):
        card = "" if limit_watts is None else f" for a card of {limit_watts:g} W"
        raise ConfigError(
            f"{len(readings_watts) - len(good)} of {len(readings_watts)} readings of power are impossible{card}: "
            f"check the sensor, or give device_watts as a value with its source."
        )
    return Power(sum(good) / len(good), len(good), len(readings_watts) - len(good))
