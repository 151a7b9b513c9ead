"""Below which price a platform is cheaper than another, for each utilisation that it may reach.

The price is the result, so that neither it nor a measured throughput is needed for the platform in question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gaudi3_scale.cost.inputs import Inputs
from gaudi3_scale.cost.model import estimate, other_money, time
from gaudi3_scale.cost.values import CHEAP, EXPENSIVE, Pick

UTILISATIONS = tuple(share / 100 for share in range(10, 71, 5))


@dataclass(frozen=True)
class Point:
    """One point of the curve."""

    mfu: float
    cheaper_below: float
    """Money per node-hour below which the platform is cheaper, whatever the inputs' ranges turn out to be."""
    more_expensive_above: float
    """And above which it is more expensive."""


def break_even(
    inputs: Inputs,
    offer: str,
    against: str,
    mfus: Sequence[float] = UTILISATIONS,
    include_energy: bool = True,
) -> list[Point]:
    """The curve of `offer` against the total cost of `against`, which needs all its inputs.

    Of an owned node the price is what an hour of it may cost without power. A price of 0 says: at no price.
    """
    total = estimate(inputs, against, include_energy).total

    def price(mfu: float, budget: float, pick: Pick) -> float:
        taken = time(inputs, offer, pick, mfu)
        rest = sum(other_money(inputs, offer, taken, pick, include_energy).values())
        return max(0.0, (budget - rest) / taken.node_hours)

    return [Point(mfu, price(mfu, total.low, EXPENSIVE), price(mfu, total.high, CHEAP)) for mfu in mfus]
