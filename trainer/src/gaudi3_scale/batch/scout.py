"""A model under a Trainer, for a few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn

from gaudi3_scale.memory.tracker import adamw
from gaudi3_scale.models.adamw import GaudiOptimizer


class Scout(pl.LightningModule):
    """Trains a model with AdamW."""

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model = model.train()
        self._loss = loss

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Its loss."""
        return self._loss(self.model, batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """As `memory.predict_step` assumes on CPU and CUDA; Habana's own on an HPU."""
        trained = [p for p in self.parameters() if p.requires_grad]
        if {p.device.type for p in trained} <= {"cpu", "cuda"}:
            return adamw(trained)
        return GaudiOptimizer.FusedAdamW(trained)
