"""Leaves at a step boundary when any process was told to."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.interruption.departure import Saver
from gaudi3_scale.run import Run


class Interrupt(pl.Callback):
    """Asks while the last micro-batch of a step computes; has to come after `Save`, whose work it need not repeat.

    Gradients that are half accumulated are never thrown away: the step is finished first.
    """

    def __init__(self, run: Run, saver: Saver) -> None:
        self._accumulation = run.config.train.accumulation_steps
        self._interruption = run.interruption
        self._saver = saver

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Notices that came while the job was set up."""
        if self._interruption.agreement.now():
            self._interruption.stop(self._saver)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Ask."""
        if (batch_idx + 1) % self._accumulation == 0:
            self._interruption.agreement.ask()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Leave, if the answer says so."""
        if (batch_idx + 1) % self._accumulation == 0 and self._interruption.agreement.answer():
            self._interruption.stop(self._saver)
