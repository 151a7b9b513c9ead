"""Saves checkpoints: one copy on every node, written by the node's first process."""

from __future__ import annotations

import time
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.report import Report
from gaudi3_scale.checkpoint import CheckpointStore
from gaudi3_scale.config import Config
from gaudi3_scale.device import Device
from gaudi3_scale.distributed import Team
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.randomness import capture
from gaudi3_scale.status import Progress, StatusFile
from gaudi3_scale.throughput.ledger import CHECKPOINT, accounted, current


class Save(pl.Callback):
    """Every `checkpoint.every` steps and at the end; has to come after `Report`, which counts the steps."""

    def __init__(
        self,
        config: Config,
        team: Team,
        device: Device,
        progress: Progress,
        store: CheckpointStore,
        about: dict[str, Any],
        report: Report,
        status: StatusFile,
        metrics: TrainingMetrics | None,
    ) -> None:
        """`about` goes into every manifest."""
        self._config = config
        self._team = team
        self._device = device
        self._progress = progress
        self._store = store
        self._about = about
        self._report = report
        self._status = status
        self._metrics = metrics

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save, if the optimizer made a step and it is one to save."""
        step = self._progress.step
        if (batch_idx + 1) % self._config.train.accumulation_steps:
            return
        if step % self._config.checkpoint.every and step != self._config.train.max_steps:
            return
        self._save(trainer, pl_module, step)
        current().append(step, force=True)

    @accounted(CHECKPOINT)
    def _save(self, trainer: pl.Trainer, pl_module: pl.LightningModule, step: int) -> None:
        assert isinstance(pl_module, LanguageModule)
        began = time.perf_counter()
        ranks = self._team.gather(
            {
                "random": capture(self._device),
                "loss_sum": pl_module.loss_sum.item(),
                "loss_count": pl_module.loss_count,
            }
        )
        progress = self._progress
        if self._team.writer:
            state = {
                "step": step,
                "samples": progress.samples,
                "loss": progress.loss,
                "first_loss": progress.first_loss,
                "model": pl_module.model.state_dict(),
                "optimizer": trainer.optimizers[0].state_dict(),
                "scheduler": trainer.lr_scheduler_configs[0].scheduler.state_dict(),
                "ranks": ranks,
            }
            self._store.save(step, state, self._about)
        progress.checkpoint, progress.checkpoint_step = self._store.path(step), step
        if self._team.writer:
            self._status.write("running", progress)
        if self._metrics is not None:
            self._metrics.checkpointed(time.perf_counter() - began)
        self._report.restart_step_clock()
