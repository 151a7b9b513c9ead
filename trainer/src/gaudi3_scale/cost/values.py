"""Values that somebody stated: each with where it is from and when, and as a range where it is not known exactly."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator

from gaudi3_scale.config.section import Section


@dataclass(frozen=True)
class Range:
    """A result that is between two values; both are the same where every input is exact."""

    low: float
    high: float

    def text(self, decimals: int = 0) -> str:
        """The range as text: `12,000 to 15,000`, or one number where the two read the same."""
        low, high = f"{self.low:,.{decimals}f}", f"{self.high:,.{decimals}f}"
        return low if low == high else f"{low} to {high}"


class Given(Section):
    """A value with its source and date.

    >>> Given(value=[10, 15], source="our contract 2026-17", date="2026-11-01").low
    10.0
    """

    value: tuple[float, float] = Field(description="a number, or [low, high] where it is not known exactly")
    source: str = Field(min_length=1, description="where it is from: a page, a contract, a measurement")
    date: datetime.date = Field(description="when it was read or measured")

    @field_validator("value", mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        return (value, value) if isinstance(value, int | float) else value

    @field_validator("value")
    @classmethod
    def _ordered(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not all(map(math.isfinite, value)) or value[0] > value[1] or value[0] < 0:
            raise ValueError(f"{list(value)} is not [low, high] of finite numbers from 0 on")
        return value

    @property
    def low(self) -> float:
        """The lower end."""
        return self.value[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self.value[1]


class Pick:
    """One end of every input: the one that makes the result small, or the one that makes it large.

    A cost rises or falls with each of its inputs over their whole ranges, so that the two ends of the result are exact.
    """

    def __init__(self, expensive: bool) -> None:
        """`expensive` picks the ends that cost more."""
        self.expensive = expensive

    def more(self, given: Given) -> float:
        """Of an input that makes the result larger."""
        return given.high if self.expensive else given.low

    def less(self, given: Given) -> float:
        """Of an input that makes the result smaller."""
        return given.low if self.expensive else given.high


CHEAP, EXPENSIVE = Pick(expensive=False), Pick(expensive=True)
