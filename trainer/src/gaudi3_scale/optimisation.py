"""The optimizer and its schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from gaudi3_scale.config import TrainConfig


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Fused AdamW; only matrices decay."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95), fused=fused)


def learning_rate_scale(step: int, config: TrainConfig) -> float:
    """Share of the peak learning rate at a step: linear rise, then a cosine down to a tenth at max_steps."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, config.max_steps - config.warmup_steps)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, progress)))
