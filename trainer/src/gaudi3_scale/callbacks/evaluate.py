"""The loss on held-out samples while the job trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.report import Report
from gaudi3_scale.config import Config
from gaudi3_scale.console import Console
from gaudi3_scale.distributed import Team
from gaudi3_scale.interruption.departure import Saver
from gaudi3_scale.interruption.job import Interruption
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.status import MetricsFile, Progress


class Evaluate(pl.Callback):
    """Every `train.evaluate_every` steps; a job that left before it was done evaluates first when it resumes.

    Has to come after `Interrupt`: a job that is to leave does not begin an evaluation.
    """

    def __init__(
        self,
        config: Config,
        team: Team,
        progress: Progress,
        console: Console,
        lines: MetricsFile,
        report: Report,
        interruption: Interruption,
        saver: Saver,
        validate: Callable[[LanguageModule, Callable[[], None]], float],
    ) -> None:
        """`validate` gives the loss of a module and calls what it is given before each batch."""
        self._every = config.train.evaluate_every
        self._config = config.train
        self._team = team
        self._progress = progress
        self._console = console
        self._lines = lines
        self._report = report
        self._interruption = interruption
        self._saver = saver
        self._validate = validate

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The step resumed from may be one to evaluate."""
        if self._every and self._team.writer:
            self._lines.truncate(self._progress.step - 1)
        self._evaluate(pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Evaluate, if the optimizer made a step and it is one to evaluate."""
        if (batch_idx + 1) % self._config.accumulation_steps == 0:
            self._evaluate(pl_module)

    def _evaluate(self, module: pl.LightningModule) -> None:
        step = self._progress.step
        if not self._every or step == 0 or step % self._every or step == self._config.max_steps:
            return
        assert isinstance(module, LanguageModule)
        self._progress.validation_loss = self._validate(module, self._between)
        if self._team.writer:
            self._lines.evaluated(self._progress)
        self._console.say(f"step {step}: held-out loss {self._progress.validation_loss:.3f}")
        self._report.restart_step_clock()

    def _between(self) -> None:
        """What is evaluated is what is saved: the state after the step."""
        if self._interruption.agreement.now():
            self._interruption.stop(self._saver)
