"""Saves checkpoints and restores from them, for the job that `gaudi3-train fit` runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import lightning.pytorch as pl
from torch.optim.lr_scheduler import LambdaLR

from gaudi3_scale.callbacks.finite import FiniteCheck
from gaudi3_scale.callbacks.report import Report
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.hyperparameters import advance
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.finite import NotFiniteError
from gaudi3_scale.job_state import capture
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.run import Run
from gaudi3_scale.throughput.ledger import CHECKPOINT, accounted, current


class Restore(pl.Callback):
    """Puts a checkpoint's tensors where they belong once model and optimizer are on their device."""

    def __init__(self, run: Run, state: dict[str, Any]) -> None:
        """`state` is what the checkpoint has besides the tensors."""
        self._run = run
        self._state = state

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called once everything is on its device, sharded if it is to be."""
        assert isinstance(pl_module, LanguageModule)
        session = self._run.checkpoints
        assert session.checkpoint is not None
        with self._run.watchdog.paused():
            load(session.checkpoint, session.peers.patient, pl_module.model, trainer.optimizers, self._state)
        scheduler = trainer.lr_scheduler_configs[0].scheduler
        assert isinstance(scheduler, LambdaLR)
        advance(scheduler, self._state["scheduler"]["last_epoch"])


class Save(pl.Callback):
    """Every `checkpoint.every` steps and at the end."""

    def __init__(self, run: Run, saver: Saver, report: Report, finite: FiniteCheck) -> None:
        self._run = run
        self._saver = saver
        self._report = report
        self._finite = finite
        self._require_finite: Callable[[], None] = lambda: None
        self._uploads: tuple[int | None, int] = (None, 0)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell the saver where the state comes from."""
        assert isinstance(pl_module, LanguageModule)
        self._saver.bind(lambda step: capture(self._run, step, trainer, pl_module))
        self._require_finite = lambda: self._finite.require(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save, if the optimizer made a step and it is one to save."""
        step = self._run.progress.step
        if (batch_idx + 1) % self._run.config.train.accumulation_steps:
            return
        self._saver.poll()
        self.note()
        if step % self._run.config.checkpoint.every and step != self._run.config.train.max_steps:
            return
        self.save(step)

    @property
    def newest(self) -> int | None:
        """The newest step that was handed to the saver or resumed from; the same on all ranks."""
        return self._saver.last_step if self._saver.last_step is not None else self._run.progress.resumed_from_step

    @accounted(CHECKPOINT)
    def save(self, step: int, last: bool = False) -> None:
        """Save the state after this step, which is the last one that was made, if it is finite. Collective."""
        if step != self._saver.last_step:
            self._require_finite()  # reads the weights, so that the device has finished all that it was given
            self._run.watchdog.seen()
        with self._run.watchdog.paused():  # a save waits for the one before it
            self._saver.save(step, last or step == self._run.config.train.max_steps)
        if self._run.metrics is not None:
            self._run.metrics.stalled(self._saver.last_stall)
        self.note()
        current().append(step, force=True)
        self._report.restart_step_clock()

    @accounted(CHECKPOINT)
    def wait(self, deadline: float | None = None) -> bool:
        """Wait until all that was begun is durable, or until a `time.monotonic()`; is it?"""
        with self._run.watchdog.paused():
            durable = self._saver.wait(deadline)
        self.note()
        return durable

    def close(self, deadline: float | None = None) -> bool:
        """Wait for uploads, too."""
        with self._run.watchdog.paused():
            done = self._saver.close(deadline)
        self.note()
        return done

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """What was begun is of finite steps, and is worth keeping, if one that is not finite ends the training."""
        try:
            yield
        except NotFiniteError:
            with contextlib.suppress(TrainerError):
                self.close()
            raise

    def estimate(self) -> float | None:
        """Seconds from `save` to durable."""
        return self._saver.estimate()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The last checkpoint has to be on the disk before the job is finished."""
        self.wait()

    def note(self) -> None:
        """Tell of checkpoints that were committed or could not be, and of uploads that ended, since the last call."""
        committed, uploader, progress = self._saver.committed, self._saver.uploader, self._run.progress
        news = committed is not None and committed.step != progress.checkpoint_step
        if committed is not None and news:
            progress.checkpoint, progress.checkpoint_step = committed.path, committed.step
            if self._run.metrics is not None:
                self._run.metrics.checkpointed(self._saver.last_duration or 0.0)
        if self._saver.error != progress.checkpoint_error:
            progress.checkpoint_error, news = self._saver.error, True
        if uploader is not None and (uploader.uploaded, uploader.failures) != self._uploads:
            self._uploads = uploader.uploaded, uploader.failures
            progress.uploaded_step, progress.upload_error = uploader.uploaded, uploader.error
            news = True
            if self._run.metrics is not None:
                self._run.metrics.uploaded(*self._uploads)
        if news and self._run.team.writer:
            self._run.status.write("running", progress)
