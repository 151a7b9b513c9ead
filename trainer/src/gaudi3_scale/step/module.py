"""The training step, as Lightning's module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from gaudi3_scale import memory
from gaudi3_scale.config import Config
from gaudi3_scale.config.auto_precision import with_precision
from gaudi3_scale.finite import FiniteSteps, gradient_norm
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.models.adamw import build_optimizer
from gaudi3_scale.models.blocks import compile_blocks
from gaudi3_scale.models.build import build, frozen_dtype
from gaudi3_scale.models.learning_rate import learning_rate_scale
from gaudi3_scale.models.materialise import build_deferred, materialise
from gaudi3_scale.models.objectives import loss_of, losses
from gaudi3_scale.models.preference import FIGURES, PreferenceLoss


class LanguageModule(pl.LightningModule):
    """The training step. The loss is summed on the device; whoever logs reads it every few steps."""

    def __init__(
        self, config: Config, device: Device, weights: bool = True, rate: Callable[[int], float] | None = None
    ) -> None:
        """Build the model; without `weights` a folder's are not read, as a checkpoint's come instead.

        `rate` is the share of the learning rate by optimizer step; without it, that of a batch that never changes.
        """
        super().__init__()
        config = with_precision(config, device.type)
        self._weights: Any = None
        if config.model.deferred:
            self.model, self._weights = build_deferred(config, weights)
        else:
            self.model = build(config.model, weights=weights, frozen=frozen_dtype(config))
        self.model.train()
        self.loss_chunks = config.memory.loss_chunks
        self.memory = memory.apply(self.model, loss_of(config), config, device)
        backend = device.compile_backend(config.train.mode)
        if backend is not None:
            compile_blocks(self.model, config.train.compile_backend or backend)
        self._config = config.train
        self._rate = rate or partial(learning_rate_scale, config=config.train)
        self._gaudi_device = device
        self.loss_sum = torch.zeros((), device=device.torch_device())
        self.loss_count = 0
        self.preference = PreferenceLoss.of(config) if config.data.prefers else None
        self.reference: Tensor | None = None
        """(N, 2): log-probabilities of the reference by number of the pair, where the model itself cannot give them."""
        names = FIGURES if self.preference is not None else ()
        self.figure_sums = torch.zeros(len(names), device=device.torch_device())
        """Of what is reported beside the loss, summed like it."""
        self.gradient_norm = torch.zeros((), device=device.torch_device())
        """Of the last optimizer step, before clipping."""
        self.finite_steps = FiniteSteps(device.torch_device())
        self.learning_rate: float | Tensor = config.train.learning_rate
        """That the last optimizer step was made with."""
        self.skipped = False
        """Was the last optimizer step left out?"""
        self._learnt = self.loss_sum.clone(), 0, self.figure_sums.clone()
        self._trained: list[Tensor] = []

    def __setattr__(self, name: str, value: Any) -> None:
        """Lightning notes the hook that it calls, forty times a step: torch need not ask whether text is a weight."""
        if (value is None or type(value) is str) and name in self.__dict__:
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def materialise(self, device: torch.device) -> None:
        """Once sharded: give a deferred model its weights; nothing for any other."""
        if next(self.model.parameters()).is_meta:
            materialise(self.model, self._config.seed, device, self._weights)
            self._weights = None

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        extra = None
        if self.preference is not None:
            loss, figures = self.preference(self.model, batch, self.reference)
            self.figure_sums += figures
        else:
            loss, extra = losses(self.model, batch, self.loss_chunks)
        self.loss_sum += loss.detach()
        self.loss_count += 1
        return loss if extra is None else loss + extra

    def reset_sums(self, loss_sum: float = 0.0, loss_count: int = 0, figures: Sequence[float] = ()) -> None:
        """Begin a new mean loss, or go on with one that was begun."""
        self.loss_sum.fill_(loss_sum)
        self.loss_count = loss_count
        self.figure_sums.copy_(torch.tensor(figures) if figures else torch.zeros_like(self.figure_sums))
        self._learnt = self.loss_sum.clone(), loss_count, self.figure_sums.clone()

    def on_after_backward(self) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients of the whole step, and note whether loss and norm are finite; the optimizer steps next."""
        if not self._trained:
            self._trained = [p for group in optimizer.param_groups for p in group["params"]]
        self.gradient_norm = gradient_norm(self._trained, self._config.gradient_clip)
        self.learning_rate = optimizer.param_groups[0]["lr"]
        if self._config.on_non_finite == "skip":
            self._skip_unless_finite(optimizer)
        else:
            self.finite_steps.note(self.loss_sum + self.gradient_norm)

    def _skip_unless_finite(self, optimizer: torch.optim.Optimizer) -> None:
        """Leave the step out on all ranks if any of them has a bad one; this waits for the device."""
        bad = (~torch.isfinite(self.loss_sum + self.gradient_norm)).float()
        if self.trainer.world_size > 1:
            torch.distributed.all_reduce(bad)
        self.skipped = bool(bad.item())
        if self.skipped:
            optimizer.zero_grad(set_to_none=True)  # an optimizer leaves alone what has no gradient
            self.loss_sum.copy_(self._learnt[0])
            self.loss_count = self._learnt[1]
            self.figure_sums.copy_(self._learnt[2])
        else:
            self._learnt = self.loss_sum.clone(), self.loss_count, self.figure_sums.clone()

    def configure_optimizers(self) -> Any:
        optimizer = build_optimizer(self.model, self._config)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: self._rate(step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
