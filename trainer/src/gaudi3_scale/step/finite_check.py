"""Stops a job whose loss, gradients or weights are not finite, on all ranks at once and before any of it is saved."""

from __future__ import annotations

import lightning.pytorch as pl
import torch

from gaudi3_scale.finite import REMEDY, NotFiniteError, is_state_finite
from gaudi3_scale.models.preference import FIGURES
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule


class FiniteCheck:
    """To be asked by every rank at the same points: where the loss is read, and before a checkpoint is begun."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._process_group = run.process_group
        self._progress = run.progress
        self._skipped_since: int | None = None

    def read(self, module: LanguageModule) -> float | None:
        """The mean loss of all ranks since the last call, None if all steps were skipped; raises NotFiniteError."""
        steps = module.finite_steps
        count = torch.full_like(module.loss_sum, module.loss_count)
        sums = torch.stack([module.loss_sum, count, steps.finite])
        totals = self._process_group.sum(torch.cat([sums, module.figure_sums]))
        total, number, finite, *figures, norm = torch.cat([totals, module.gradient_norm.reshape(1)]).tolist()
        self._progress.gradient_norm = norm
        self._progress.figures = {
            name: figure / number for name, figure in zip(FIGURES, figures, strict=False) if number
        }
        module.reset_sums()
        self._require(module, finite)
        return total / number if number else None

    def require(self, trainer: pl.Trainer, module: LanguageModule) -> None:
        """Raise NotFiniteError if the state after the step that was just made may not be saved."""
        steps = module.finite_steps
        state = is_state_finite(trainer.optimizers).to(steps.finite.device)
        finite, states = self._process_group.sum(torch.stack([steps.finite, state])).tolist()
        self._require(module, finite)
        if states < self._run.world_size:
            raise NotFiniteError(
                f"The weights or the optimizer's state are not finite after step {self._progress.step}: no checkpoint "
                f"has them, and {REMEDY}."
            )

    def count_skipped(self, module: LanguageModule) -> None:
        """Count the step that was just made, if it was skipped. Raises NotFiniteError if too many in a row were."""
        step = self._progress.step
        if not module.skipped:
            self._skipped_since = None
            return
        self._progress.skipped_steps += 1
        if self._skipped_since is None:
            self._skipped_since = step
        row = step - self._skipped_since + 1
        if row > self._run.config.train.max_skipped_steps:
            raise NotFiniteError(
                f"{row} steps in a row, {self._skipped_since} to {step}, had a loss or a gradient norm that is not "
                f"finite, and train.max_skipped_steps is {self._run.config.train.max_skipped_steps}: {REMEDY}."
            )
        self._run.console.log(f"step {step} is skipped: its loss or its gradient norm is not finite")

    def _require(self, module: LanguageModule, finite: float) -> None:
        steps = module.finite_steps
        if finite < steps.noted * self._run.world_size:
            before = min(self._process_group.gather(int(steps.finite.item())))
            step = self._progress.step - steps.noted + before + 1
            self._progress.loss = float("nan")
            raise NotFiniteError(
                f"The loss or the gradient norm of step {step} is not finite: no checkpoint has that step, and {REMEDY}"
                ", or set train.on_non_finite to skip to leave out single steps."
            )
        steps.reset()
