"""Tells how training goes: console, status.json, metrics.jsonl and Prometheus."""

from __future__ import annotations

import time
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.finite import FiniteCheck
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.run import Run
from gaudi3_scale.throughput.ledger import COMPUTE, OTHER
from gaudi3_scale.throughput.meter import Reading

STATUS_SECONDS = 0.5
"""Between two times that status.json is replaced, which costs as much as many short steps."""


class Report(pl.Callback):
    """Counts steps, and reads the loss from the device every `log_every` of them, not more often."""

    def __init__(self, run: Run, finite: FiniteCheck) -> None:
        self._run = run
        self._finite = finite
        self._first = True
        self._step_began = 0.0
        self._status_written = -STATUS_SECONDS
        self._tokens_per_step = run.progress.samples_per_step * run.progress.sequence_length

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clocks."""
        if self._run.team.writer:
            self._run.status.write("running", self._run.progress)
        self._run.console.start(self._run.progress)
        self.restart_step_clock()
        self._run.watch.meter.start(self._step_began)
        self._run.watch.ledger.switch(COMPUTE)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the step, if the optimizer made one."""
        self._run.watchdog.beat()
        if (batch_idx + 1) % self._run.config.train.accumulation_steps:
            return
        step = self._run.progress.advance()
        now = time.perf_counter()
        if self._run.metrics is not None:
            self._run.metrics.stepped(step, now - self._step_began)
        self._step_began = now
        self._run.watch.meter.step(self._tokens_per_step, now)
        self._run.console.stepped(step, now)
        assert isinstance(pl_module, LanguageModule)
        if self._first:
            self._first = False
            pl_module.loss_sum.item()  # waits for the device: what takes long at first is done
            self._run.watchdog.seen()
        if self._finite.skipped(pl_module) and self._run.metrics is not None:
            self._run.metrics.skipped_steps.inc()
        if step == 1 or step % self._run.config.train.log_every == 0 or step == self._run.config.train.max_steps:
            self._log(pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Give the terminal back."""
        self._run.watch.ledger.switch(OTHER)
        self._run.console.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Give the terminal back."""
        self._run.console.stop()

    def restart_step_clock(self) -> None:
        """What happened since the last step is no part of the next one."""
        self._step_began = time.perf_counter()

    def _log(self, module: LanguageModule) -> None:
        progress = self._run.progress
        loss = self._finite.read(module)
        self._run.watchdog.seen()
        if loss is not None:
            progress.loss = loss
        if progress.first_loss is None:
            progress.first_loss = loss
        # The loss has waited for the device, so that this is when the step has ended; from here on it is reporting.
        with self._run.watch.ledger.during(OTHER):
            self._tell(self._run.watch.read(time.perf_counter()), loss, float(module.learning_rate))

    def _tell(self, reading: Reading, loss: float | None, learning_rate: float) -> None:
        progress = self._run.progress
        progress.tokens_per_second = reading.tokens_per_second
        progress.tokens_per_second_stepping = reading.tokens_per_second_stepping
        progress.mfu = reading.mfu
        goodput = self._run.watch.goodput()
        progress.goodput = goodput.status()
        if self._run.metrics is not None:
            self._run.metrics.logged(progress, learning_rate)
            self._run.metrics.measured(reading, goodput)
        if self._run.team.writer:
            self._run.lines.append(progress, learning_rate, loss)
            now = time.monotonic()
            if now - self._status_written >= STATUS_SECONDS:
                self._run.status.write("running", progress)
                self._status_written = now
            self._run.watch.ledger.append(progress.step)
        if self._run.metrics is not None:
            self._run.metrics.reported(self._run.status.failures)
        self._run.console.logged(progress)
