"""The readings of all processes of a job, known to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gaudi3_scale.monitoring.anomaly import StepReading

if TYPE_CHECKING:
    import numpy as np


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


def gather(reading: RankReading, group: Any, more: Sequence[float] = ()) -> tuple[list[RankReading], np.ndarray]:
    """Of every rank of a gloo group, by rank, with as many `more` numbers of each; one collective.

    `group` None is a process alone.
    """
    import numpy as np

    if group is None:
        return [reading], np.array([more])
    import torch
    import torch.distributed as dist

    own = astuple(reading)
    mine = torch.tensor((*own, *more), dtype=torch.float64)
    all_of_them = torch.empty(dist.get_world_size(group), len(mine), dtype=torch.float64)
    dist.all_gather(list(all_of_them.unbind()), mine, group=group)
    return [RankReading(*row) for row in all_of_them[:, : len(own)].tolist()], all_of_them[:, len(own) :].numpy()


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
