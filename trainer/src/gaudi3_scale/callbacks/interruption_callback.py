"""Leaving in order, in a Trainer: `Trainer(callbacks=[InterruptionCallback()])`, and nothing else.

trainer.fit(model, ckpt_path=InterruptionCallback.newest(trainer))     # goes on where the last one was interrupted
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale import own_script
from gaudi3_scale.callbacks.gaudi_checkpoint import GaudiCheckpoint
from gaudi3_scale.callbacks.status_callback import Contributor, join, status_of
from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.integration.trainer import step_of
from gaudi3_scale.internals import without_signals
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.last_checkpoint import LastCheckpoint
from gaudi3_scale.interruption.leaving import Interruption
from gaudi3_scale.interruption.notice import Notice
from gaudi3_scale.interruption.notices import Notices
from gaudi3_scale.secret import proven_group

FILE = "interrupted.ckpt"


class InterruptionCallback(Contributor, pl.Callback):
    """Saves at a step boundary and ends the process with exit code 75 when any rank has a notice.

    Also during the sanity check and validation; with accumulation the optimizer's step is finished first. Test and
    predict are left alone: they have nothing to save.
    """

    def __init__(self, save: GaudiCheckpoint | Callable[[pl.Trainer], None] | None = None, **settings: Any) -> None:
        """`save` is a GaudiCheckpoint (or its method `save`), or is called on every rank; without it
        `Trainer.save_checkpoint` writes `interrupted.ckpt` into the trainer's `default_root_dir`.

        `settings` are those of the section `interruption` of `gaudi3-train config`, by default those of the job.
        """
        owner = getattr(save, "__self__", save)
        self._checkpoint = owner if isinstance(owner, GaudiCheckpoint) else None
        self._save = save if save is not None else lambda trainer: trainer.save_checkpoint(_file(trainer))
        self._config = InterruptionConfig(**{**own_script.interruption(), **settings})
        self._given: Interruption | None = None
        self._notices: Notices | None = None
        self._interruption: Interruption | None = None
        self._leaving = False
        self._reason: str | None = None

    @classmethod
    def of_job(cls, save: GaudiCheckpoint, interruption: Interruption) -> InterruptionCallback:
        """For a job that listens already; it ends with `Interrupted`, which its command turns into the exit code."""
        made = cls(save)
        made._given = made._interruption = interruption
        return made

    @staticmethod
    def newest(trainer: pl.Trainer) -> Path | None:
        """What an interrupted run left, for `ckpt_path`; None if there is nothing."""
        path = _file(trainer)
        return path if path.exists() else None

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Listen, before Lightning installs handlers of its own."""
        if stage != "fit":
            return
        without_signals(trainer)
        join(trainer)
        if self._given is not None:
            return
        group = None
        if trainer.world_size > 1:
            group = proven_group()
        self._notices = Notices(self._config, trainer.local_rank == 0)
        self._interruption = Interruption(
            self._notices, group, trainer.world_size, lambda reason: self._record(trainer, reason)
        )
        self._notices.start()

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Signals are the caller's again, unless the process is about to end: the launcher's SIGTERM may come yet."""
        if self._notices is not None and not self._leaving:
            self._notices.stop()
            self._notices = self._interruption = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Notices that came while the trainer was set up."""
        self.check(trainer)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Ask while the last micro-batch of a step computes."""
        if self._interruption is not None and _ends_step(trainer, batch_idx):
            self._interruption.agreement.ask()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Leave once the optimizer has made its step: gradients that are half accumulated are never thrown away."""
        if self._interruption is not None and _ends_step(trainer, batch_idx) and self._interruption.agreement.answer():
            self._leave(trainer)

    def on_validation_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """A validation may take longer than the notice gives."""
        self.check(trainer)

    def check(self, trainer: pl.Trainer) -> None:
        """Save and leave at once if any rank has a notice. Collective."""
        if self._interruption is not None and self._interruption.agreement.now():
            self._leave(trainer)

    def tell(self, notice: Notice) -> bool:
        """Have the fit leave as at any notice; False where no fit is running."""
        if self._interruption is not None:
            self._interruption.tell(notice)
        return self._interruption is not None

    def contribute(self) -> dict[str, Any]:
        """Why the last fit left."""
        return {"interruption": self._reason}

    def _leave(self, trainer: pl.Trainer) -> None:
        assert self._interruption is not None
        self._leaving = True
        saver: LastCheckpoint
        if self._checkpoint is not None and self._checkpoint.saver is not None:
            saver = self._checkpoint.at(trainer)
        else:
            saver = _Function(lambda: self._save(trainer))
        step = step_of(trainer)
        reason = self._interruption.stop(saver, step)
        if self._given is not None:
            raise self._interruption.interrupted(step, reason)
        if trainer.is_global_zero:
            print(f"Interrupted at step {step}, as {reason}.", file=sys.stderr, flush=True)
        raise SystemExit(EXIT_CODE)

    def _record(self, trainer: pl.Trainer, reason: str) -> None:
        self._reason = reason
        status = status_of(trainer)
        if status is not None:
            status.interrupted(reason)


class _Function:
    """A function that saves, as `LastCheckpoint`."""

    newest: int | None = None

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._seconds: float | None = None

    def save(self, step: int, last: bool = False) -> None:
        began = time.monotonic()
        self._save()
        self._seconds = time.monotonic() - began

    def wait(self, deadline: float | None) -> bool:
        return True

    def close(self, deadline: float | None) -> bool:
        return True

    def estimate(self) -> float | None:
        return self._seconds


def _file(trainer: pl.Trainer) -> Path:
    return Path(trainer.default_root_dir) / FILE


def _ends_step(trainer: pl.Trainer, batch_idx: int) -> bool:
    """Does the optimizer make a step with this batch?"""
    return (batch_idx + 1) % trainer.accumulate_grad_batches == 0 or bool(trainer.is_last_batch)
