"""Two steps of a training whose model is thrown away afterwards: do they fit, and what do they take?

A process that runs out of memory tells the others before their next collective, so that nobody waits for it. Under DDP
gradients are not reduced; under FSDP every collective is preceded by the agreement.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from gaudi3_scale.batch.memory_agreement import MemoryAgreement, PeerOutOfMemory
from gaudi3_scale.batch.rehearsal_callback import RehearsalCallback
from gaudi3_scale.batch.search import BatchTrial
from gaudi3_scale.distributed.randomness import capture, restore
from gaudi3_scale.hpu.device import Device, is_out_of_memory

STEPS = 2
"""The first one makes the optimizer's state, so that the second one is like all others."""


def rehearse(
    build: Callable[[list[pl.Callback]], tuple[pl.Trainer, pl.LightningModule]],
    batch: Callable[[int], Tensor],
    size: int,
    device: Device,
    gather: Callable[[Any], Sequence[Any]],
) -> BatchTrial:
    """Make two optimizer steps of batches of `size`; the same result on all processes.

    Args:
        build: a new trainer for `STEPS` steps with the given callbacks, and a new module.
        batch: this many samples, on the CPU.
        size: samples per process and forward pass.
        device: of this process.
        gather: everyone's value, known to everyone.

    The random state is as before afterwards, and so is the device's memory.
    """
    random = capture(device)
    device.reset_peak_memory()
    before = device.allocated()
    fits = _steps(build, batch, size, MemoryAgreement(gather))
    peak = device.peak_memory()
    gc.collect()
    device.release_memory()
    torch.compiler.reset()
    device.reset_peak_memory()  # the job's own begins here
    restore(random, device)
    mine = None if peak is None or not fits else peak - before
    peaks = gather(mine)
    known = [each for each in peaks if each is not None]
    return BatchTrial(size, fits, max(known) if len(known) == len(peaks) else None)


class _Batches:
    """One batch, time and again. (Lightning takes a list for loaders that are read side by side.)"""

    def __init__(self, batch: Tensor, times: int) -> None:
        self._batch, self._times = batch, times

    def __len__(self) -> int:
        return self._times

    def __iter__(self) -> Iterator[Tensor]:
        return repeat(self._batch, self._times)


def _steps(
    build: Callable[[list[pl.Callback]], tuple[pl.Trainer, pl.LightningModule]],
    batch: Callable[[int], Tensor],
    size: int,
    agreement: MemoryAgreement,
) -> bool:
    """The exception, whose frames hold the step's tensors, is gone on return."""
    try:
        trainer, module = build([RehearsalCallback(agreement)])
        passes = int(trainer.accumulate_grad_batches)
        trainer.fit(module, train_dataloaders=_Batches(batch(size), STEPS * passes))
        agreement.ask()
    except PeerOutOfMemory:
        return False
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        agreement.leave()
        return False
    return True


def can_agree() -> bool:
    """Has this torch the functions that FSDP's collectives are preceded by? (from 2.9 on)"""
    from torch.distributed.fsdp import FSDPModule

    return hasattr(FSDPModule, "set_custom_all_gather") and hasattr(FSDPModule, "set_custom_reduce_scatter")
