"""The loss on held-out samples while the job trains."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.interruption_callback import InterruptionCallback
from gaudi3_scale.data.samples import Samples
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule
from gaudi3_scale.step.validation import evaluate


class EvaluationCallback(pl.Callback):
    """Every `train.evaluate_every` steps; a job that left before it was done evaluates first when it resumes."""

    def __init__(self, run: Run, samples: Samples, interruption: InterruptionCallback) -> None:
        self._run = run
        self._samples = samples
        self._interruption = interruption

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The step resumed from may be one to evaluate."""
        if self._run.config.train.evaluate_every and self._run.process_group.writer:
            self._run.evaluations.truncate(self._run.progress.step - 1)
        self._evaluate(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Evaluate, if the optimizer made a step and it is one to evaluate."""
        if (batch_idx + 1) % self._run.plan.accumulation == 0:
            self._evaluate(trainer, pl_module)

    def _evaluate(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        run, progress, settings = self._run, self._run.progress, self._run.config.train
        step, every = progress.step, settings.evaluate_every
        if not every or step == 0 or step % every or step == settings.max_steps:
            return
        assert isinstance(module, LanguageModule)

        def before_batch() -> None:
            run.watchdog.beat()
            self._interruption.check(trainer)  # what is evaluated is what is saved: the state after the step

        with run.watchdog.anew():
            evaluate(run, module, self._samples, before_batch)
            run.watchdog.seen()
        run.report_evaluation()
        run.console.log(f"step {step}: held-out loss {progress.validation_loss:.3f}")
