"""Tokens per second and model FLOPs utilization (MFU) over a window of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gaudi3_scale.throughput.peaks import matmul_dtype, peak_flops

if TYPE_CHECKING:
    import torch
    from torch import nn

WARMUP_STEPS = 3
"""The first steps of a process allocate, compile and settle: they are no part of any window."""


@dataclass(frozen=True)
class Reading:
    """Means over a window; None where the window is empty or a figure is not known."""

    tokens_per_second: float | None = None
    """By the wall clock: checkpoints, evaluation and whatever else happened between the steps included."""
    tokens_per_second_stepping: float | None = None
    """Of the steps alone: without the stalls for checkpoints and evaluation."""
    mfu: float | None = None
    """Of the steps alone: the model's operations over what all devices could do at their dense peak, 0 to 1."""
    mfu_wall: float | None = None
    """The same by the wall clock."""
    hfu: float | None = None
    """Like `mfu`, with what activation checkpointing computes again."""


class Meter:
    """Counts tokens and seconds between readings; all times are given in seconds of one steady clock."""

    def __init__(
        self,
        flops_per_token: float | None = None,
        hardware_flops_per_token: float | None = None,
        peak: float | None = None,
        warmup_steps: int = WARMUP_STEPS,
    ) -> None:
        """`peak` in FLOP/s is that of all devices whose tokens are counted; without it there is no MFU."""
        self._model, self._hardware, self._peak = flops_per_token, hardware_flops_per_token, peak
        self._warmup = warmup_steps
        self._tokens = 0
        self._stalled = 0.0
        self._began: float | None = None

    def start(self, now: float) -> None:
        if self._warmup == 0:
            self._began = now

    def step(self, tokens: int, now: float) -> None:
        """An optimizer step that learnt from this many tokens (all its micro-batches) has ended."""
        if self._began is not None:
            self._tokens += tokens
            return
        self._warmup -= 1
        if self._warmup <= 0:
            self._restart(now)

    def stalled(self, seconds: float) -> None:
        """Training stood still since the last step, for a checkpoint or an evaluation."""
        self._stalled += seconds

    def read(self, now: float) -> Reading:
        """The window up to the step that has just ended, and begin the next one."""
        if self._began is None or not self._tokens or now <= self._began:
            return Reading()
        wall = self._tokens / (now - self._began)
        moving = now - self._began - self._stalled
        stepping = self._tokens / moving if moving > 0 else None
        self._restart(now)
        return Reading(
            wall,
            stepping,
            self._utilization(stepping, self._model),
            self._utilization(wall, self._model),
            self._utilization(stepping, self._hardware),
        )

    def _utilization(self, tokens_per_second: float | None, flops: float | None) -> float | None:
        if tokens_per_second is None or flops is None or self._peak is None:
            return None
        return tokens_per_second * flops / self._peak

    def _restart(self, now: float) -> None:
        self._began, self._tokens, self._stalled = now, 0, 0.0


def meter_for(
    model: nn.Module, device: torch.device, precision: str, sequence_length: int, world_size: int
) -> tuple[Meter, str | None]:
    """A meter for this model on this many such devices, and why it gives no MFU (None where it does).

    `precision` is Lightning's; `sequence_length` the tokens that attention compares each token with. All devices of the
    job are taken to be of one kind.
    """
    import torch

    from gaudi3_scale.hpu.device import hardware_name
    from gaudi3_scale.throughput.flops import UncountableError, count, recomputed_share

    name = hardware_name(device)
    if name is None:
        return Meter(), f"{device.type} has no peak to compare with"
    # Only CUDA rounds float32 products, and only if asked to.
    dtype = matmul_dtype(precision, device.type == "cuda" and torch.get_float32_matmul_precision() != "highest")
    peak = peak_flops(name, dtype)
    if peak is None:
        return Meter(), f"no confirmed dense peak of {name!r} for {dtype} is known"
    try:
        flops = count(model)
    except UncountableError as error:
        return Meter(), str(error)
    hardware = flops.hardware_per_token(sequence_length, recomputed_share(model))
    return Meter(flops.per_token(sequence_length), hardware, peak * world_size), None
