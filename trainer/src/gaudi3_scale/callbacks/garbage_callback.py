"""Garbage is collected between two steps, and at the same steps on all ranks."""

from __future__ import annotations

import gc
from typing import Any

import lightning.pytorch as pl

COLLECT_EVERY = 50
"""Optimizer steps between two collections of garbage; cycles may hold on to device memory, so it must not be rare."""


class GarbageCallback(pl.Callback):
    """Collects garbage between steps, at the same steps on all ranks, instead of whenever a rank happens to be due.

    A collection in the middle of a rank's step makes all others wait in the next collective.
    """

    def __init__(self, every: int = COLLECT_EVERY) -> None:
        self._every = every
        self._was_enabled = False
        self._steps = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._was_enabled = gc.isenabled()
        gc.collect()
        gc.disable()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Collect, if it is time to; the count of batches starts again in each epoch, the count of steps goes on."""
        if (batch_idx + 1) % trainer.accumulate_grad_batches == 0:
            self._steps += 1
            if self._steps % self._every == 0:
                gc.collect()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._was_enabled:
            gc.enable()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        if self._was_enabled:
            gc.enable()
