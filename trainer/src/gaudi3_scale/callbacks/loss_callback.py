"""Counts the steps of a job, and reads the loss where it is logged."""

from __future__ import annotations

import time
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.run import Run
from gaudi3_scale.step.finite_check import FiniteCheck
from gaudi3_scale.step.module import LanguageModule


class LossCallback(pl.Callback):
    """Reads the loss from the device after step 1, every `train.log_every` steps and after the last, not more often."""

    def __init__(self, run: Run, finite: FiniteCheck) -> None:
        self._run = run
        self._finite = finite
        self._first = True

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the step, if the optimizer made one."""
        run = self._run
        run.watchdog.beat()
        if (batch_idx + 1) % run.plan.accumulation:
            return
        step = run.progress.advance()
        assert isinstance(pl_module, LanguageModule)
        if self._first:
            self._first = False
            pl_module.loss_sum.item()  # waits for the device: what takes long at first is done
            run.watchdog.seen()
        self._finite.count_skipped(pl_module)
        if run.config.train.is_log_step(step):
            self._read(pl_module)

    def _read(self, module: LanguageModule) -> None:
        progress = self._run.progress
        began = time.perf_counter()
        loss = self._finite.read(module)
        self._run.read_seconds = time.perf_counter() - began
        self._run.watchdog.seen()
        if loss is not None:
            progress.loss = loss
        if progress.first_loss is None:
            progress.first_loss = loss
        progress.mean_loss, progress.learning_rate = loss, float(module.learning_rate)
        progress.logged_step = progress.step
