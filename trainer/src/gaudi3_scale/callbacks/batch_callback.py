"""Follows the batch-size warm-up: each stage is an epoch of the loader, where Lightning accumulates afresh."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import lightning.pytorch as pl
from torch import Tensor

from gaudi3_scale.batch.schedule import RULES
from gaudi3_scale.data.prefetch import Prefetched
from gaudi3_scale.data.samples import RankBatches, Samples
from gaudi3_scale.integration.ddp.balance import UnevenBatches
from gaudi3_scale.run import Run


def enter_stage(run: Run) -> int:
    """Have the next step take the batch that is due at the samples consumed; its samples."""
    plan, size = run.plan, run.batches.per_step(run.progress.samples)
    run.progress.samples_per_step = size
    steps = plan.shares[run.rank] if plan.shares is not None else size // (plan.micro_batch * run.world_size)
    if steps != plan.accumulation:
        run.plan = replace(plan, accumulation=steps)
    return size


class BatchCallback(pl.Callback):
    """Sets the accumulation of each stage where it begins."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._size = 0

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A stage begins, or a resumed job is in the middle of it."""
        run, before = self._run, self._size
        self._size = enter_stage(run)
        trainer.accumulate_grad_batches = run.plan.accumulation
        if run.config.train.batch_warmup and self._size != before:
            growth = RULES[run.config.train.batch_learning_rate](self._size / run.batches.stages[0][1])
            run.console.log(
                f"step {run.progress.step + 1}, {run.progress.tokens:,} tokens: {self._size:,} samples per step, "
                f"{run.plan.accumulation} micro-batch(es) accumulated, learning rate times {growth:.4g}"
            )


class StageBatches:
    """This rank's micro-batches from the next step on; each iteration ends with the stage that it begins in."""

    def __init__(self, run: Run, samples: Samples) -> None:
        self._run, self._samples = run, samples
        self._ahead = run.config.data.prefetch
        self._stage: Prefetched[Tensor] | None = None

    @property
    def ahead(self) -> int:
        """Batches that may be made before they are asked for."""
        return self._ahead

    def resize(self, ahead: int) -> None:
        """Read this many ahead from now on, in this stage and the next ones, where any are read ahead."""
        if self._stage is not None:
            self._stage.resize(ahead)
            self._ahead = self._stage.ahead

    def __iter__(self) -> Iterator[Tensor]:
        run, at = self._run, self._run.progress.samples
        size, steps, shares = run.plan.micro_batch, run.batches.left(at), run.plan.shares
        batches: Any
        if shares is not None:  # which batch_warmup does not go with
            batches = UnevenBatches(self._samples, at, size, run.rank, shares)
        else:
            batches = RankBatches(self._samples, at, size, run.rank, run.world_size)
        if steps is not None:
            batches = itertools.islice(batches, steps * (run.batches.per_step(at) // (size * run.world_size)))
        self._stage = Prefetched(batches, self._ahead, run.device.pin)
        return iter(self._stage)
