"""The training step, as Lightning's module."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from gaudi3_scale import memory
from gaudi3_scale.config import Config
from gaudi3_scale.device import Device
from gaudi3_scale.models.build import build
from gaudi3_scale.models.materialise import build_deferred, materialise
from gaudi3_scale.models.objectives import losses, training_loss
from gaudi3_scale.optimisation import build_optimizer, learning_rate_scale


class LanguageModule(pl.LightningModule):
    """The training step. The loss is summed on the device; whoever logs reads it every few steps."""

    def __init__(self, config: Config, device: Device, weights: bool = True) -> None:
        """Build the model; without `weights` a folder's are not read, as a checkpoint's come instead."""
        super().__init__()
        self.model = build_deferred(config) if config.model.deferred else build(config.model, weights=weights)
        self.model.train()
        self.memory = memory.apply(self.model, training_loss, config, device)
        backend = device.compile_backend(config.train.mode)
        if backend is not None:
            self.model.compile(backend=backend)  # in place: the names of parameters stay
        self._config = config.train
        self._gaudi_device = device
        self.loss_sum = torch.zeros((), device=device.torch_device())
        self.loss_count = 0

    def materialise(self, device: torch.device) -> None:
        """Once sharded: give a deferred model its weights; nothing for any other."""
        if next(self.model.parameters()).is_meta:
            materialise(self.model, self._config.seed, device)

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        """Loss of one micro-batch."""
        loss, extra = losses(self.model, batch)
        self.loss_sum += loss.detach()
        self.loss_count += 1
        return loss if extra is None else loss + extra

    def on_after_backward(self) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def configure_optimizers(self) -> Any:
        """Optimizer and schedule."""
        optimizer = build_optimizer(self.model, self._config)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_scale(step, self._config))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
