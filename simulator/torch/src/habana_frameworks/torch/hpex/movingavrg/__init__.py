"""Averages of weights. Formula and signature: [bridge] 1.19, `hpex/movingavrg/FusedEMA.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn

from habana_frameworks.torch.core.step_closure import _mark_step_if_lazy

__all__ = ["FusedEMA"]


class FusedEMA:
    """A copy of the model whose weights follow: ema ← d·ema + (1-d)·weight, with d = decay·(1 - e^(-updates/2000))."""

    def __init__(self, model: nn.Module, decay: float = 0.9999, updates: float = 0) -> None:
        if not decay >= 0:
            raise ValueError(f"decay is {decay}, but it has to be 0 or more.")
        parallel = isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))
        self.ema: nn.Module = deepcopy(model.module if parallel else model).eval()
        self.decay = lambda count: decay * (1 - math.exp(-count / 2000))
        self.updates = updates

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Follow the model's present weights."""
        _mark_step_if_lazy()
        self.updates += 1
        share = self.decay(self.updates)
        for average, value in zip(self.ema.state_dict().values(), model.state_dict().values(), strict=True):
            average.copy_(average * share + (1 - share) * value)
        _mark_step_if_lazy()

    def update_attr(
        self, model: nn.Module, include: Sequence[str] = (), exclude: Sequence[str] = ("process_group", "reducer")
    ) -> None:
        """Copy the model's public attributes, those of `include` alone if it has any."""
        for name, value in model.__dict__.items():
            if not name.startswith("_") and name not in exclude and (not include or name in include):
                setattr(self.ema, name, value)
