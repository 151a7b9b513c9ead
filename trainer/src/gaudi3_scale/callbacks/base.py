"""What callbacks of this package are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lightning.pytorch as pl

from gaudi3_scale.throughput.ledger import OTHER

if TYPE_CHECKING:
    from gaudi3_scale.checkpoint.saver import Saver
    from gaudi3_scale.run import Run


class CheckpointListener:
    """A callback that GaudiCheckpoint tells of what it did."""

    def checkpoint_begun(self, saver: Saver) -> None:
        """Training stood still for `saver.last_stall` seconds."""

    def checkpoint_changed(self, saver: Saver, values: dict[str, Any]) -> None:
        """One was committed, uploaded or failed; `values` are those of status.json."""


class Reporter(pl.Callback):
    """Reports the run where its loss was read, after LossCallback has done so."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def report(self) -> None:
        """The step that was just made is one to report."""
        raise NotImplementedError

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Report, if it is time to."""
        if self.run.is_logged(batch_idx):
            with self.run.ledger.during(OTHER):
                self.report()
