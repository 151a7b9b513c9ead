"""status.json: how far a Trainer is, and why it ended.

    Trainer(callbacks=[StatusCallback("runs/one")], ...)

In a job, the callbacks of this package for checkpoints, interruption and throughput add it by themselves.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

import gaudi3_scale.integration  # noqa: F401  (a script with any of the callbacks has `accelerator="hpu"`)
from gaudi3_scale import own_script
from gaudi3_scale.callbacks.base import CheckpointListener
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.hpu.device import identity
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.patience import LEAVING_FILE
from gaudi3_scale.run import Run
from gaudi3_scale.status import FILE, Progress, State, StatusFile
from gaudi3_scale.throughput.ledger import OTHER


class Contributor:
    """A callback that knows something for status.json."""

    def contribute(self) -> dict[str, Any]:
        """Keys of status.json and their values."""
        raise NotImplementedError

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Report what fails before training, too, such as a card that is not available."""
        join(trainer)


class StatusCallback(CheckpointListener, pl.Callback):
    """Writes status.json of this node, by its first process."""

    def __init__(self, directory: str | Path | None = None, seconds: float = 2.0) -> None:
        """Write into `directory` (default: a job's folder, else `default_root_dir`), at most every `seconds` seconds.

        Reading the loss waits for the device, so it is read that often, too.
        """
        self._directory = Path(directory) if directory is not None else None
        self._seconds = seconds
        self._file: StatusFile | None = None
        self._progress: Progress | None = None
        self._last_step: int | None = None
        self._written = -math.inf
        self._said: State | None = None
        self._trainer: pl.Trainer | None = None
        self._first_loss: float | None = None
        self._run: Run | None = None

    @classmethod
    def of_job(cls, run: Run, seconds: float = 0.5) -> StatusCallback:
        """For a run, which reads the loss and says itself how the job ended."""
        made = cls(run.config.output_dir, seconds)
        made._run = run
        return made

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._run is not None:
            self._write("running")
            return
        self._last_step = _last_step(trainer)
        self._open(trainer)
        self._write("running")

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the step, if the optimizer made one; write, if it is time."""
        if self._run is not None:
            self._job_batch(self._run, batch_idx)
            return
        progress = self._progress
        if self._file is None or progress is None or trainer.global_step == progress.step:
            return
        progress.step = trainer.global_step
        if progress.loss is None or time.monotonic() - self._written >= self._seconds:
            self._read(outputs)
            self._write("running")
        elif progress.step == self._last_step:
            self._read(outputs)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The training is over. Whether the script is, only its launcher knows."""
        if self._run is not None:
            return
        self._write("running" if LEAVING_FILE in os.environ else "finished")

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Say why it ended; a script that leaves on purpose has not failed."""
        if self._run is not None:
            return
        if isinstance(exception, SystemExit):
            if exception.code == EXIT_CODE and self._said != "interrupted":
                self._write("interrupted")
            if exception.code in (0, None, EXIT_CODE):
                return
        said = str(exception).strip()
        named = said if isinstance(exception, TrainerError) else f"{type(exception).__name__}: {said or 'no message'}"
        if self._progress is None:
            self._open(trainer)
        self._write("failed", named.splitlines()[0])

    def checkpoint_changed(self, saver: Saver, values: dict[str, Any]) -> None:
        """Checkpoints are news at once."""
        if self._run is not None:
            for name, value in values.items():
                setattr(self._run.progress, name, value)
            self._write("running")
        elif self._said in ("running", "finished"):
            self._write(self._said)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {} if self._first_loss is None else {"first_loss": self._first_loss}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The training began before this process did."""
        self._first_loss = state.get("first_loss")

    def interrupted(self, reason: str) -> None:
        """The job leaves, as it was told to."""
        if self._progress is not None:
            self._progress.interruption = reason
        self._write("interrupted")

    def _open(self, trainer: pl.Trainer) -> None:
        device = trainer.strategy.root_device
        self._progress = progress = Progress(
            self._last_step or 0, trainer.world_size, device.type, tokens_per_sample=0, samples_per_step=0
        )
        progress.runs_on(**identity(device))
        self._trainer = trainer
        if trainer.local_rank == 0:
            folder = self._directory or own_script.directory() or Path(trainer.default_root_dir)
            folder.mkdir(parents=True, exist_ok=True)
            self._file = StatusFile(folder / FILE)

    def _read(self, outputs: Any) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if isinstance(loss, torch.Tensor) and loss.numel() == 1 and self._progress is not None:
            self._progress.loss = float(loss.detach())
            if self._first_loss is None:
                self._first_loss = self._progress.loss
            self._progress.first_loss = self._first_loss

    def _job_batch(self, run: Run, batch_idx: int) -> None:
        now = time.monotonic()
        if run.is_logged(batch_idx) and now - self._written >= self._seconds:
            self._written = now
            with run.ledger.during(OTHER):
                self._write("running")

    def _write(self, state: State, error: str | None = None) -> None:
        if self._run is not None:
            if self._run.process_group.writer:
                self._run.status.write(state, self._run.progress, error)
            return
        if self._file is None or self._progress is None or self._trainer is None:
            return
        self._progress.step = self._trainer.global_step  # which a callback that leaves knows before this one
        self._said, self._written = state, time.monotonic()
        others: dict[str, Any] = {"max_steps": self._last_step, "tokens": None}
        for callback in self._trainer.callbacks:
            if isinstance(callback, Contributor):
                others.update(callback.contribute())
        self._file.write(state, self._progress, error, **others)


def join(trainer: pl.Trainer) -> None:
    """Have the status of a job written; for callbacks of this package, when their fit is set up."""
    if own_script.directory() is not None and status_of(trainer) is None:
        trainer.callbacks.append(StatusCallback())  # the last one, as what the others did at a step is to be in it


def status_of(trainer: pl.Trainer) -> StatusCallback | None:
    """The trainer's callback that writes status.json, if it has one."""
    return next((callback for callback in trainer.callbacks if isinstance(callback, StatusCallback)), None)


def _last_step(trainer: pl.Trainer) -> int | None:
    """The step at which the training ends; None where nobody knows."""
    steps = trainer.estimated_stepping_batches
    return int(steps) if math.isfinite(steps) and steps > 0 else None
