"""What a job prints while it trains."""

from __future__ import annotations

import time
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.base import Reporter


class ConsoleCallback(Reporter):
    """A line where the loss is read, and a bar on a terminal."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.run.console.start(self.run.progress)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.run.console.stepped(self.run.progress.step, time.perf_counter())
        super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def report(self) -> None:
        self.run.console.logged(self.run.progress)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.run.console.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self.run.console.stop()
