"""The optimizer and its schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from gaudi3_scale.config import TrainConfig
from gaudi3_scale.optimizer import GaudiOptimizer


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Fused AdamW over what is trained; only matrices decay."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return GaudiOptimizer.FusedAdamW(groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon)


def learning_rate_scale(step: int, config: TrainConfig) -> float:
    """Share of the peak learning rate at a step: a linear rise, then what `train.schedule` says.

    cosine and linear fall to `final_learning_rate` of the peak at max_steps; wsd (warm-up, stable, decay: Hu et al.,
    "MiniCPM", 2024) falls linearly in the last `decay_fraction` of the steps only; constant never does.
    """
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    began = config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "wsd":
        began = max(began, config.max_steps - round(config.decay_fraction * config.max_steps))
    progress = min(1.0, max(0, step - began) / max(1, config.max_steps - began))
    fall = 1 - config.final_learning_rate
    if config.schedule == "cosine":
        return config.final_learning_rate + fall / 2 * (1 + math.cos(math.pi * progress))
    return 1 - fall * progress
