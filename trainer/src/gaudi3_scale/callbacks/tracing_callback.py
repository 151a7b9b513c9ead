"""The spans of a training: the end of the start-up, the first step, each checkpoint."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.base import CheckpointListener
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.run import Run
from gaudi3_scale.traces.spans import Span, Tracer

NANOSECONDS = 1e9


class TracingCallback(CheckpointListener, pl.Callback):
    """Is there where traces are on; a step after the first one does not call it.

    All ranks have a first step of their own, and rank 0 speaks for the checkpoints of all.
    """

    def __init__(self, run: Run, tracer: Tracer) -> None:
        """What is open in the tracer, the start-up, ends when the training begins."""
        self._run, self._tracer = run, tracer
        self._first: Span | None = None
        self._begun: dict[int, tuple[int, float]] = {}
        """When the save of a step began, and for how many seconds training stood still."""
        self._failures = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The model and the data are there."""
        self._tracer.finish(self._tracer.outermost)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """The first batch is there."""
        self._first = self._tracer.begin("first step", {"gaudi.step": self._run.progress.step + 1})
        self.on_train_batch_start = None  # type: ignore[assignment]  # Lightning calls what is callable

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """The first step is over with its last micro-batch."""
        if (batch_idx + 1) % self._run.plan.accumulation == 0:
            self._tracer.finish(self._first)
            self.on_train_batch_end = None  # type: ignore[assignment]

    def checkpoint_begun(self, saver: Saver) -> None:
        """Training went on after a pause."""
        if self._run.rank == 0 and saver.last_step is not None:
            now = self._tracer.now()
            self._begun[saver.last_step] = (now - int(saver.last_stall * NANOSECONDS), saver.last_stall)
            self._failures = saver.failures

    def checkpoint_changed(self, saver: Saver, values: dict[str, Any]) -> None:
        """One is durable, or could not be written; noticed after a step, so that the save says how long it took."""
        step = saver.committed.step if saver.committed is not None else None
        if step in self._begun and step is not None:
            began, stall = self._begun.pop(step)
            end = began + int((saver.last_duration or 0.0) * NANOSECONDS)
            self._tracer.record("checkpoint", began, end, _numbers(step, stall))
        elif saver.failures > self._failures and saver.last_step in self._begun:
            self._failures = saver.failures
            began, stall = self._begun.pop(saver.last_step)
            about = _numbers(saver.last_step, stall)
            self._tracer.record("checkpoint", began, self._tracer.now(), about, error="not written")


def _numbers(step: int, stall: float) -> dict[str, float]:
    return {"gaudi.step": step, "gaudi.stall_seconds": round(stall, 6)}
