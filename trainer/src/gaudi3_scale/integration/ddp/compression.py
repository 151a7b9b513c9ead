"""How DDP's buckets are averaged: plainly, or compressed for as long as that is faster on this link."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from gaudi3_scale.integration.ddp.int8 import Int8Mean

Compression = Literal["none", "int8", "powersgd"]
WARM = 2
"""Reductions before the first that is measured or compressed: DDP rearranges its buckets after the first one."""
PASSES = 7
"""Of each kind; the first of each is not counted, as buffers are made in it."""
WORTH = 0.97
"""A compressed pass has to take less than this share of a plain one to pay."""


class CompressionTrial:
    """Plain and compressed backward passes by turns, until it is known which are faster.

    >>> trial = CompressionTrial("int8")
    >>> while not trial.is_over:
    ...     trial.note(0.010 if trial.compresses else 0.030)
    >>> trial.decide([trial.medians()])
    'int8 compression stays on: a backward pass takes 10.0 ms with it and 30.0 ms without'
    >>> trial.compresses
    True
    """

    def __init__(self, name: str, warm: int = WARM, passes: int = PASSES) -> None:
        """Without `passes` compression is on once buckets have settled, and nothing is decided."""
        self._name = name
        self._left = [False] * warm + [False, True] * passes
        self._warm = warm
        self._seconds: dict[bool, list[float]] = {False: [], True: []}
        self._stays: bool | None = None

    @property
    def compresses(self) -> bool:
        """Is the next pass compressed?"""
        return self._stays if self._stays is not None else bool(self._left and self._left[0])

    @property
    def is_over(self) -> bool:
        """Have all passes been made?"""
        return not self._left

    @property
    def is_decided(self) -> bool:
        """Is it known whether compression stays on?"""
        return self._stays is not None

    def note(self, seconds: float) -> None:
        """What the pass took that `compresses` said the kind of."""
        kind = self._left.pop(0)
        if self._warm:
            self._warm -= 1
        else:
            self._seconds[kind].append(seconds)
        if not self._left and not self._seconds[True]:
            self._stays = True

    def medians(self) -> tuple[float, float]:
        """Seconds of a plain and of a compressed pass of this process."""
        return median(self._seconds[False][1:]), median(self._seconds[True][1:])

    def decide(self, medians: Sequence[Sequence[float]]) -> str:
        """By the medians of all processes, of which the slowest counts; the sentence that says why."""
        plain, compressed = (max(each[kind] for each in medians) for kind in (0, 1))
        self._stays = compressed < WORTH * plain
        times = f"a backward pass takes {compressed * 1000:.1f} ms with it and {plain * 1000:.1f} ms without"
        if self._stays:
            return f"{self._name} compression stays on: {times}"
        return f"{self._name} compression is switched off, as it does not pay on this link: {times}"


class Reduction:
    """What DDP calls for every bucket. `compressing` is set before a backward pass, and counts for the whole of it."""

    def __init__(self, compression: Compression, rank: int = 4, error_feedback: bool = True) -> None:
        """`rank` is that of PowerSGD's factors."""
        self.compressing = False
        self.reduced = 0
        """Reductions of all buckets so far."""
        self._int8 = Int8Mean(error_feedback=error_feedback) if compression == "int8" else None
        self._power: Any = _power_state(rank, error_feedback) if compression == "powersgd" else None
        self._in_order = dist.get_backend() == "gloo"

    def __call__(self, bucket: Any) -> Any:
        """Average a `torch.distributed.GradBucket`; a Future of its buffer."""
        last = bool(bucket.is_last())
        self.reduced += last
        buffer, index = bucket.buffer(), bucket.index()
        if not self.compressing:
            self._pay(index, buffer)
            return _mean(buffer)
        if self._int8 is not None:
            return self._int8.start(index, buffer, last)
        from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import powerSGD_hook

        future = powerSGD_hook(self._power, bucket)
        if self._in_order:
            # Its later collectives are issued by whichever thread ends an earlier one; gloo takes them in the order in
            # which they are issued, and two processes would not have the same one.
            future.wait()
        return future

    def _pay(self, index: int, buffer: Tensor) -> None:
        if self._int8 is not None:
            self._int8.owed(index, buffer)
        elif self._power is not None and (lost := self._power.error_dict.get(index)) is not None:
            if lost.numel() == buffer.numel():
                buffer += lost
            lost.zero_()

    def register(self, model: Any) -> None:
        """Have a DistributedDataParallel use this."""
        model.register_comm_hook(self, lambda reduction, bucket: reduction(bucket))


def _mean(buffer: Tensor) -> Any:
    """As DDP does it itself."""
    buffer.div_(dist.get_world_size())
    future: Any = dist.all_reduce(buffer, async_op=True)
    return future.get_future().then(lambda done: done.value()[0])


def _power_state(rank: int, error_feedback: bool) -> Any:
    """State of torch's hook, which compresses from its first call on; whoever calls it waits for settled buckets."""
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState

    state = PowerSGDState(
        process_group=None,
        matrix_approximation_rank=rank,
        start_powerSGD_iter=2,
        use_error_feedback=error_feedback,
        orthogonalization_epsilon=1e-8,
    )
    state.iter = state.start_powerSGD_iter
    return state


def gathered(values: Sequence[float], device: torch.device) -> list[list[float]]:
    """Everyone's numbers, by rank, on everyone; in float32, which every device has. Collective."""
    mine = torch.tensor(values, dtype=torch.float32, device=device)
    every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    return [each.tolist() for each in every]
