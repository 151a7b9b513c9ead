"""The reference of preference tuning, computed once when a job begins."""

from __future__ import annotations

import lightning.pytorch as pl

from gaudi3_scale.data.samples import Samples
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule
from gaudi3_scale.step.reference import reference_table


class ReferenceCallback(pl.Callback):
    """Asks the model of its first weights; a job that goes on has the answers in its checkpoint."""

    def __init__(self, run: Run, samples: Samples) -> None:
        self._run = run
        self._samples = samples

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called once everything is on its device, and before anything is learnt."""
        assert isinstance(pl_module, LanguageModule)
        if pl_module.preference is None or pl_module.preference.has_adapters or pl_module.reference is not None:
            return
        run = self._run

        def before_batch() -> None:
            run.watchdog.beat()
            run.interruption.check("the reference of the pairs", run.progress.step)

        pl_module.reference = reference_table(run, pl_module, self._samples, before_batch)
