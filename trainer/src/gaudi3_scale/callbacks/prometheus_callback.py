"""What Prometheus reads of a job while it trains."""

from __future__ import annotations

import time
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.base import CheckpointListener, Reporter
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.run import Run
from gaudi3_scale.throughput.ledger import CHECKPOINT, EVALUATION


class PrometheusCallback(CheckpointListener, Reporter):
    """Keeps the figures of `gaudi3_scale.metrics`."""

    def __init__(self, run: Run, metrics: TrainingMetrics) -> None:
        super().__init__(run)
        self._metrics = metrics
        self._step_began = 0.0
        self._stalled = 0
        self._skipped = run.progress.skipped_steps
        self._committed: Any = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._step_began, self._stalled = time.perf_counter(), self._stalls()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Time the step, if the optimizer made one; checkpoints and evaluations are no part of it."""
        run = self.run
        if (batch_idx + 1) % run.plan.accumulation:
            return
        now, stalled = time.perf_counter(), self._stalls()
        self._metrics.stepped(run.progress.step, now - self._step_began - (stalled - self._stalled) / 1e9)
        self._step_began, self._stalled = now, stalled
        if run.progress.skipped_steps != self._skipped:
            self._metrics.skipped_steps.inc(run.progress.skipped_steps - self._skipped)
            self._skipped = run.progress.skipped_steps
        super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def report(self) -> None:
        """The loss was read, and the speed after it."""
        run = self.run
        self._metrics.logged(run.progress, run.progress.learning_rate)
        if run.measured is not None:
            self._metrics.measured(*run.measured)
        self._metrics.reported(run.status.failures)

    def checkpoint_begun(self, saver: Saver) -> None:
        """Training stood still for it."""
        self._metrics.stalled(saver.last_stall)

    def checkpoint_changed(self, saver: Saver, values: dict[str, Any]) -> None:
        """One was committed or uploaded."""
        if saver.committed is not self._committed:
            self._committed = saver.committed
            self._metrics.checkpointed(saver.last_duration or 0.0)
        if saver.uploader is not None:
            self._metrics.uploaded(saver.uploader.uploaded, saver.uploader.failures)

    def _stalls(self) -> int:
        spent = self.run.ledger.nanoseconds()
        return spent[CHECKPOINT] + spent[EVALUATION]
