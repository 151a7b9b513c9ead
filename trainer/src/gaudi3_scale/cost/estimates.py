"""Estimates side by side, as every report shows them."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_scale.cost.break_even import Point, break_even
from gaudi3_scale.cost.inputs import Inputs
from gaudi3_scale.cost.model import Estimate


@dataclass(frozen=True)
class Estimates:
    """Estimates side by side, with the inputs that they are made from."""

    inputs: Inputs
    include_energy: bool
    estimates: tuple[Estimate, ...]

    @property
    def cheapest(self) -> str | None:
        """The offer that is cheapest whatever the inputs' ranges turn out to be; None where they overlap."""
        first, *others = sorted(self.estimates, key=lambda each: each.total.high)
        return first.offer if all(first.total.high < other.total.low for other in others) else None

    @property
    def has_curve(self) -> bool:
        """Is there a break-even curve of the first offer? One needs another offer, and the peak that MFU refers to."""
        return len(self.estimates) > 1 and self.estimates[0].mfu is not None

    def break_even(self, offer: str, against: str) -> list[Point]:
        """Below which price per node-hour `offer` is cheaper than `against`, by its MFU."""
        return break_even(self.inputs, offer, against, include_energy=self.include_energy)
