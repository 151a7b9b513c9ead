"""What was measured at each point of a training, and the schedule that follows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Branch:
    """Short trainings from one checkpoint with one batch."""

    factor: int
    """The batch over that of the job."""
    samples_per_step: int
    losses: tuple[float, ...]
    """Held-out, in nats per token, by seed."""

    @property
    def loss(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.losses)


@dataclass
class CriticalPoint:
    """A checkpoint and the branches from it, the first of them with the job's own batch."""

    step: int
    samples: int
    tokens: int
    least: float = 0.0
    """Nats per token by which a loss may be higher in any case."""
    branches: list[Branch] = field(default_factory=list)

    @property
    def tolerance(self) -> float:
        """Two standard errors of the mean loss of the first branch over the seeds, or `least` if that is more."""
        losses = self.branches[0].losses
        noise = 2 * statistics.stdev(losses) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0
        return max(self.least, noise)

    def holds(self, branch: Branch) -> bool:
        """Is its loss no worse than the first branch's?"""
        return branch.loss - self.branches[0].loss <= self.tolerance

    @property
    def critical(self) -> int:
        """The largest batch, in samples per step, up to which no loss is worse."""
        found = self.branches[0].samples_per_step
        for branch in self.branches:
            if not self.holds(branch):
                break
            found = branch.samples_per_step
        return found

    def record(self) -> dict[str, Any]:
        """For JSON."""
        own = {"step": self.step, "samples": self.samples, "tokens": self.tokens, "tolerance": self.tolerance}
        branches = [asdict(each) | {"loss": each.loss, "no_worse": self.holds(each)} for each in self.branches]
        return own | {"critical_samples_per_step": self.critical, "branches": branches}


def schedule_of(first: int, points: Sequence[CriticalPoint]) -> list[dict[str, int]]:
    """The stages for `train.batch_warmup`: at each point no more than is critical there and at every later one.

    >>> def point(tokens: int, critical: int) -> CriticalPoint:
    ...     return CriticalPoint(0, 0, tokens, branches=[Branch(1, critical, (2.0,))])
    >>> schedule_of(8, [point(100, 8), point(200, 32), point(400, 16)])
    [{'from_tokens': 0, 'samples_per_step': 8}, {'from_tokens': 200, 'samples_per_step': 16}]
    """
    stages = [{"from_tokens": 0, "samples_per_step": first}]
    ordered = sorted(points, key=lambda point: point.tokens)
    for at, point in enumerate(ordered):
        batch = min(later.critical for later in ordered[at:])
        if batch > stages[-1]["samples_per_step"]:
            stages.append({"from_tokens": point.tokens, "samples_per_step": batch})
    return stages
