"""The learning rate of each step: a warm-up, then the schedule of the configuration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaudi3_scale.config import TrainConfig


def learning_rate_scale(step: float, config: TrainConfig, steps: float | None = None) -> float:
    """Share of the peak learning rate at a step of `steps` (max_steps without it): a linear rise, then the schedule.

    cosine and linear fall to `final_learning_rate` of the peak at the end; wsd (warm-up, stable, decay: Hu et al.,
    "MiniCPM", 2024) falls linearly in the last `decay_fraction` of the steps only; constant never does.
    """
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    began: float = config.warmup_steps
    total = config.max_steps if steps is None else steps
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "wsd":
        began = max(began, total - round(config.decay_fraction * total))
    progress = min(1.0, max(0, step - began) / max(1, total - began))
    fall = 1 - config.final_learning_rate
    if config.schedule == "cosine":
        return config.final_learning_rate + fall / 2 * (1 + math.cos(math.pi * progress))
    return 1 - fall * progress
