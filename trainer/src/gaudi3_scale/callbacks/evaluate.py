"""The loss on held-out samples while the job trains."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.report import Report
from gaudi3_scale.data.samples import Samples
from gaudi3_scale.interruption.departure import Saver
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.run import Run
from gaudi3_scale.validation import validate


class Evaluate(pl.Callback):
    """Every `train.evaluate_every` steps; a job that left before it was done evaluates first when it resumes.

    Has to come after `Interrupt`: a job that is to leave does not begin an evaluation.
    """

    def __init__(self, run: Run, samples: Samples, report: Report, saver: Saver) -> None:
        self._run = run
        self._samples = samples
        self._report = report
        self._saver = saver

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The step resumed from may be one to evaluate."""
        if self._run.config.train.evaluate_every and self._run.team.writer:
            self._run.evaluations.truncate(self._run.progress.step - 1)
        self._evaluate(pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Evaluate, if the optimizer made a step and it is one to evaluate."""
        if (batch_idx + 1) % self._run.config.train.accumulation_steps == 0:
            self._evaluate(pl_module)

    def _evaluate(self, module: pl.LightningModule) -> None:
        run, progress, settings = self._run, self._run.progress, self._run.config.train
        step, every = progress.step, settings.evaluate_every
        if not every or step == 0 or step % every or step == settings.max_steps:
            return
        assert isinstance(module, LanguageModule)
        with run.watchdog.anew():
            progress.validation_loss = validate(
                module.model, self._samples, run.config, run.device, run.team, self._before_batch
            )
            run.watchdog.seen()
        if run.team.writer:
            run.evaluations.evaluated(progress)
        run.console.say(f"step {step}: held-out loss {progress.validation_loss:.3f}")
        self._report.restart_step_clock()

    def _before_batch(self) -> None:
        """What is evaluated is what is saved: the state after the step."""
        self._run.watchdog.beat()
        if self._run.interruption.agreement.now():
            self._run.interruption.stop(self._saver)
