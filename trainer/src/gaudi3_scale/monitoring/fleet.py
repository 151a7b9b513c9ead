"""The readings of all processes of a job, known to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gaudi3_scale.monitoring.anomaly import StepReading

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RankReading:
    """What one process measured of the steps since the reading before; means of a step, in seconds."""

    seconds: float
    data_wait: float
    own: float
    """0 = not known; likewise `memory`."""
    memory: float
    shapes: float
    disturbed: float


def noticed(data_wait: float, read: float, seconds: float) -> float:
    """The wait for data per step, or 0 where the device has not noticed it, as it had work left; all in seconds.

    `read` is for how long the device's result was waited for in the end: for a step of `seconds` or longer, if it was
    busy all the time.
    """
    return data_wait if read < seconds else 0.0


def gather(reading: RankReading, group: Any) -> list[RankReading]:
    """Of every rank of a gloo group, by rank; one collective of six numbers. `group` None is a process alone."""
    if group is None:
        return [reading]
    import torch
    import torch.distributed as dist

    mine = torch.tensor(astuple(reading), dtype=torch.float64)
    all_of_them: list[torch.Tensor] = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_of_them, mine, group=group)
    return [RankReading(*each.tolist()) for each in all_of_them]


def combine(step: int, ranks: Sequence[RankReading]) -> StepReading:
    """The reading of a job.

    Ranks wait for each other in every step, so its duration is their median, and the longest wait for data is
    everyone's.
    """
    waits = [rank.data_wait for rank in ranks]
    longest = max(waits)
    return StepReading(
        step=step,
        seconds=median(rank.seconds for rank in ranks),
        data_wait=min(longest, median(rank.seconds for rank in ranks)),
        waiting_rank=waits.index(longest) if len(ranks) > 1 else None,
        compilations=int(max(rank.shapes for rank in ranks)),
        memory=tuple(rank.memory for rank in ranks) if all(rank.memory for rank in ranks) else (),
        own=tuple(rank.own for rank in ranks) if all(rank.own for rank in ranks) else (),
        disturbed=any(rank.disturbed for rank in ranks),
    )
