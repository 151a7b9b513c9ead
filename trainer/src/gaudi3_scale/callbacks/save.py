"""Saves checkpoints and restores from them, for the job that `gaudi3-train fit` runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl
from torch.optim.lr_scheduler import LambdaLR

from gaudi3_scale.callbacks.finite import FiniteCheck
from gaudi3_scale.callbacks.report import Report
from gaudi3_scale.checkpoint import Checkpoint
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.hyperparameters import advance
from gaudi3_scale.checkpoint.restore import capture as capture_training
from gaudi3_scale.checkpoint.saver import Saver, Snapshot
from gaudi3_scale.config import Config
from gaudi3_scale.device import Device
from gaudi3_scale.distributed import Team
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.randomness import capture
from gaudi3_scale.status import Progress, StatusFile
from gaudi3_scale.throughput.ledger import CHECKPOINT, accounted, current
from gaudi3_scale.watchdog import Watchdog


class Restore(pl.Callback):
    """Puts a checkpoint's tensors where they belong once model and optimizer are on their device; comes first."""

    def __init__(self, checkpoint: Checkpoint, saver: Saver, state: dict[str, Any], watchdog: Watchdog) -> None:
        """`state` is what the checkpoint has besides the tensors."""
        self._watchdog = watchdog
        self._checkpoint = checkpoint
        self._saver = saver
        self._state = state

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called once everything is on its device, sharded if it is to be."""
        assert isinstance(pl_module, LanguageModule)
        with self._watchdog.paused():
            load(self._checkpoint, self._saver.peers.patient, pl_module.model, trainer.optimizers, self._state)
        scheduler = trainer.lr_scheduler_configs[0].scheduler
        assert isinstance(scheduler, LambdaLR)
        advance(scheduler, self._state["scheduler"]["last_epoch"])


class Save(pl.Callback):
    """Every `checkpoint.every` steps and at the end; has to come after `Report`, which counts the steps."""

    def __init__(
        self,
        config: Config,
        team: Team,
        device: Device,
        progress: Progress,
        saver: Saver,
        report: Report,
        status: StatusFile,
        metrics: TrainingMetrics | None,
        finite: FiniteCheck,
        watchdog: Watchdog,
    ) -> None:
        self._config = config
        self._team = team
        self._device = device
        self._progress = progress
        self._saver = saver
        self._report = report
        self._status = status
        self._metrics = metrics
        self._finite = finite
        self._watchdog = watchdog
        self._require_finite: Callable[[], None] = lambda: None
        self._uploads: tuple[int | None, int] = (None, 0)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell the saver where the state comes from."""
        assert isinstance(pl_module, LanguageModule)
        self._saver.bind(lambda step: self._capture(step, trainer, pl_module))
        self._require_finite = lambda: self._finite.require(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save, if the optimizer made a step and it is one to save."""
        step = self._progress.step
        if (batch_idx + 1) % self._config.train.accumulation_steps:
            return
        self._saver.poll()
        self.note()
        if step % self._config.checkpoint.every and step != self._config.train.max_steps:
            return
        self.save(step)

    @property
    def newest(self) -> int | None:
        """The newest step that was handed to the saver or resumed from; the same on all ranks."""
        return self._saver.last_step if self._saver.last_step is not None else self._progress.resumed_from_step

    @accounted(CHECKPOINT)
    def save(self, step: int, last: bool = False) -> None:
        """Save the state after this step, which is the last one that was made, if it is finite. Collective."""
        if step != self._saver.last_step:
            self._require_finite()  # reads the weights, so that the device has finished all that it was given
            self._watchdog.seen()
        with self._watchdog.paused():  # a save waits for the one before it
            self._saver.save(step, last or step == self._config.train.max_steps)
        if self._metrics is not None:
            self._metrics.stalled(self._saver.last_stall)
        self.note()
        current().append(step, force=True)
        self._report.restart_step_clock()

    @accounted(CHECKPOINT)
    def wait(self, deadline: float | None = None) -> bool:
        """Wait until all that was begun is durable, or until a `time.monotonic()`; is it?"""
        with self._watchdog.paused():
            durable = self._saver.wait(deadline)
        self.note()
        return durable

    def close(self, deadline: float | None = None) -> bool:
        """Wait for uploads, too."""
        with self._watchdog.paused():
            done = self._saver.close(deadline)
        self.note()
        return done

    def estimate(self) -> float | None:
        """Seconds from `save` to durable."""
        return self._saver.estimate()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The last checkpoint has to be on the disk before the job is finished."""
        self.wait()

    def note(self) -> None:
        """Tell of checkpoints that were committed or could not be, and of uploads that ended, since the last call."""
        committed, uploader, progress = self._saver.committed, self._saver.uploader, self._progress
        news = committed is not None and committed.step != progress.checkpoint_step
        if committed is not None and news:
            progress.checkpoint, progress.checkpoint_step = committed.path, committed.step
            if self._metrics is not None:
                self._metrics.checkpointed(self._saver.last_duration or 0.0)
        if self._saver.error != progress.checkpoint_error:
            progress.checkpoint_error, news = self._saver.error, True
        if uploader is not None and (uploader.uploaded, uploader.failures) != self._uploads:
            self._uploads = uploader.uploaded, uploader.failures
            progress.uploaded_step, progress.upload_error = uploader.uploaded, uploader.error
            news = True
            if self._metrics is not None:
                self._metrics.uploaded(*self._uploads)
        if news and self._team.writer:
            self._status.write("running", progress)

    def _capture(self, step: int, trainer: pl.Trainer, module: LanguageModule) -> Snapshot:
        progress = self._progress
        tensors, training = capture_training(module.model, trainer.optimizers)
        return Snapshot(
            tensors=tensors,
            training=training,
            shared={
                "step": step,
                "samples": progress.samples,
                "loss": progress.loss,
                "first_loss": progress.first_loss,
                "skipped_steps": progress.skipped_steps,
                # Its position alone: rates follow from the configuration of whoever resumes.
                "scheduler": {"last_epoch": trainer.lr_scheduler_configs[0].scheduler.state_dict()["last_epoch"]},
            },
            rank={
                "random": capture(self._device),
                "loss_sum": module.loss_sum.item(),
                "loss_count": module.loss_count,
            },
        )
