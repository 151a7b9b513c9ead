"""Tells how training goes: console, status.json, metrics.jsonl and Prometheus."""

from __future__ import annotations

import time
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.finite import FiniteCheck
from gaudi3_scale.config import Config
from gaudi3_scale.console import Console
from gaudi3_scale.distributed import Team
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.status import MetricsFile, Progress, StatusFile
from gaudi3_scale.throughput.ledger import COMPUTE, OTHER
from gaudi3_scale.throughput.meter import Reading
from gaudi3_scale.throughput.watch import Watch
from gaudi3_scale.watchdog import Watchdog

STATUS_SECONDS = 0.5
"""Between two times that status.json is replaced, which costs as much as many short steps."""


class Report(pl.Callback):
    """Counts steps, and reads the loss from the device every `log_every` of them, not more often."""

    def __init__(
        self,
        config: Config,
        team: Team,
        progress: Progress,
        console: Console,
        status: StatusFile,
        lines: MetricsFile,
        metrics: TrainingMetrics | None,
        watch: Watch,
        finite: FiniteCheck,
        watchdog: Watchdog,
    ) -> None:
        self._config = config.train
        self._team = team
        self._progress = progress
        self._console = console
        self._status = status
        self._lines = lines
        self._metrics = metrics
        self._watch = watch
        self._finite = finite
        self._watchdog = watchdog
        self._first = True
        self._step_began = 0.0
        self._status_written = -STATUS_SECONDS
        self._tokens_per_step = progress.samples_per_step * progress.sequence_length

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clocks."""
        if self._team.writer:
            self._status.write("running", self._progress)
        self._console.start(self._progress)
        self.restart_step_clock()
        self._watch.meter.start(self._step_began)
        self._watch.ledger.switch(COMPUTE)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the step, if the optimizer made one."""
        self._watchdog.beat()
        if (batch_idx + 1) % self._config.accumulation_steps:
            return
        step = self._progress.advance()
        now = time.perf_counter()
        if self._metrics is not None:
            self._metrics.stepped(step, now - self._step_began)
        self._step_began = now
        self._watch.meter.step(self._tokens_per_step, now)
        self._console.stepped(step, now)
        assert isinstance(pl_module, LanguageModule)
        if self._first:
            self._first = False
            pl_module.loss_sum.item()  # waits for the device: what takes long at first is done
            self._watchdog.seen()
        if self._finite.skipped(pl_module) and self._metrics is not None:
            self._metrics.skipped_steps.inc()
        if step == 1 or step % self._config.log_every == 0 or step == self._config.max_steps:
            self._log(pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Give the terminal back."""
        self._watch.ledger.switch(OTHER)
        self._console.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Give the terminal back."""
        self._console.stop()

    def restart_step_clock(self) -> None:
        """What happened since the last step is no part of the next one."""
        self._step_began = time.perf_counter()

    def _log(self, module: LanguageModule) -> None:
        progress = self._progress
        loss = self._finite.read(module)
        self._watchdog.seen()
        if loss is not None:
            progress.loss = loss
        if progress.first_loss is None:
            progress.first_loss = loss
        # The loss has waited for the device, so that this is when the step has ended; from here on it is reporting.
        with self._watch.ledger.during(OTHER):
            self._tell(self._watch.read(time.perf_counter()), loss, float(module.learning_rate))

    def _tell(self, reading: Reading, loss: float | None, learning_rate: float) -> None:
        progress = self._progress
        progress.tokens_per_second = reading.tokens_per_second
        progress.tokens_per_second_stepping = reading.tokens_per_second_stepping
        progress.mfu = reading.mfu
        goodput = self._watch.goodput()
        progress.goodput = goodput.status()
        if self._metrics is not None:
            self._metrics.logged(progress, learning_rate)
            self._metrics.measured(reading, goodput)
        if self._team.writer:
            self._lines.append(progress, learning_rate, loss)
            now = time.monotonic()
            if now - self._status_written >= STATUS_SECONDS:
                self._status.write("running", progress)
                self._status_written = now
            self._watch.ledger.append(progress.step)
        if self._metrics is not None:
            self._metrics.reported(self._status.failures)
        self._console.logged(progress)
