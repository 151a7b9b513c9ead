"""Averages of weights. Formula and signature: [bridge] 1.19, `hpex/movingavrg/FusedEMA.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

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
        single: Any = model.module if parallel else model
        self.ema: nn.Module = deepcopy(single).eval()
        self._decay = decay
        self.updates = updates

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Follow the model's present weights."""
        _mark_step_if_lazy()
        self.updates += 1
        share = self._decay * (1 - math.exp(-self.updates / 2000))
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
