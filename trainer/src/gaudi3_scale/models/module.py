"""The training step, as Lightning's module."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from gaudi3_scale import memory
from gaudi3_scale.config import Config
from gaudi3_scale.device import Device
from gaudi3_scale.models.build import build_llama
from gaudi3_scale.models.objectives import sample_loss
from gaudi3_scale.optimisation import build_optimizer, learning_rate_scale


class LanguageModule(pl.LightningModule):
    """The training step. The loss is summed on the device; whoever logs reads it every few steps."""

    def __init__(self, config: Config, device: Device, state: dict[str, Any] | None = None) -> None:
        """Build the model, or restore it from a checkpoint's state."""
        super().__init__()
        self.model = build_llama(config.model)
        self.model.train()
        if state is not None:
            self.model.load_state_dict(state["model"])
        self.memory = memory.apply(self.model, sample_loss, config, device)
        self._config = config.train
        self._gaudi_device = device
        self._restored = state
        self.loss_sum = torch.zeros((), device=device.torch_device())
        self.loss_count = 0

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        """Loss of one micro-batch."""
        loss = sample_loss(self.model, batch)
        self.loss_sum += loss.detach()
        self.loss_count += 1
        return loss

    def on_after_backward(self) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def configure_optimizers(self) -> Any:
        """Optimizer and schedule, where they were at the checkpoint."""
        optimizer = build_optimizer(self.model, self._config)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_scale(step, self._config))
        if self._restored is not None:
            optimizer.load_state_dict(self._restored["optimizer"])
            scheduler.load_state_dict(self._restored["scheduler"])
            self._restored = None  # holds a second copy of all weights
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
