"""The same for a Trainer of one's own: `Trainer(callbacks=[InterruptionCallback()])`, and nothing else.

trainer.fit(model, ckpt_path=InterruptionCallback.newest(trainer))     # goes on where the last one was interrupted
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale import job
from gaudi3_scale.callbacks.status import Contributor, join, status_of
from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.interruption.agreement import Agreement
from gaudi3_scale.interruption.departure import depart
from gaudi3_scale.interruption.handlers import own_signals
from gaudi3_scale.interruption.notices import EXIT_CODE, Notices

FILE = "interrupted.ckpt"


class InterruptionCallback(Contributor, pl.Callback):
    """Saves at a step boundary and ends the process with exit code 75 when any rank has a notice.

    Also during the sanity check and validation; with accumulation the optimizer's step is finished first. Test and
    predict are left alone: they have nothing to save.
    """

    def __init__(self, save: Callable[[pl.Trainer], None] | None = None, **settings: Any) -> None:
        """`save` is called on every rank; without it `Trainer.save_checkpoint` writes `interrupted.ckpt` into the
        trainer's `default_root_dir`. `settings` are those of the section `interruption` of `gaudi3-train config`,
        by default those of the job.
        """
        self._save = save or (lambda trainer: trainer.save_checkpoint(_file(trainer)))
        self._config = InterruptionConfig(**{**job.interruption(), **settings})
        self._notices: Notices | None = None
        self._agreement: Agreement | None = None
        self._told = False
        self._words: str | None = None

    @staticmethod
    def newest(trainer: pl.Trainer) -> Path | None:
        """What an interrupted run left, for `ckpt_path`; None if there is nothing."""
        path = _file(trainer)
        return path if path.exists() else None

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Listen, before Lightning installs handlers of its own."""
        if stage != "fit":
            return
        own_signals(trainer)
        join(trainer)
        group = None
        if trainer.world_size > 1:
            import torch.distributed as dist

            group = dist.new_group(backend="gloo")
        self._notices = Notices(self._config, trainer.local_rank == 0)
        self._notices.before_leaving = lambda why: self._write_down(trainer, why)
        self._notices.start()
        self._agreement = Agreement(self._notices, group, trainer.world_size)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Signals are the caller's again, unless the process is about to end: the launcher's SIGTERM may come yet."""
        if self._notices is not None and not self._told:
            self._notices.stop()
            self._notices = self._agreement = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Notices that came while the trainer was set up."""
        self._check(trainer)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Ask while the batch computes."""
        if self._agreement is not None:
            self._agreement.ask()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Leave once the optimizer has made its step."""
        if self._agreement is None:
            return
        self._told |= self._agreement.answer()
        accumulating = (batch_idx + 1) % trainer.accumulate_grad_batches != 0 and not trainer.is_last_batch
        if self._told and not accumulating:
            self._leave(trainer)

    def on_validation_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """A validation may take longer than the notice gives."""
        self._check(trainer)

    def _check(self, trainer: pl.Trainer) -> None:
        if self._agreement is not None and self._agreement.now():
            self._leave(trainer)

    def _leave(self, trainer: pl.Trainer) -> None:
        assert self._notices is not None
        self._told = True
        saver = _Function(lambda: self._save(trainer))
        left = depart(saver, trainer.global_step, _gatherer(self._agreement), self._notices.notice)
        self._write_down(trainer, left.words)
        self._notices.before_leaving = lambda why: None  # it is written down already
        if trainer.is_global_zero:
            print(f"Interrupted at step {trainer.global_step}, as {left.words}.", file=sys.stderr, flush=True)
        trainer.strategy.barrier()
        raise SystemExit(EXIT_CODE)

    def contribute(self) -> dict[str, Any]:
        """Why the last fit left."""
        return {"interruption": self._words}

    def _write_down(self, trainer: pl.Trainer, words: str) -> None:
        self._words = words
        status = status_of(trainer)
        if status is not None:
            status.interrupted(words)


class _Function:
    """A function as a `Saver`."""

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


def _gatherer(agreement: Agreement | None) -> Callable[[Any], list[Any]]:
    group = agreement.group if agreement is not None else None

    def gather(value: Any) -> list[Any]:
        if group is None:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(values, value, group=group)
        return values

    return gather
