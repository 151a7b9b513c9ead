"""FusedAdamW for the gradients that torch.distributed.optim's functional optimisers are handed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from habana_frameworks.torch.hpex.optimizers.adamw import (
    Moments,
    check,
    checked_types,
    moment_types,
    refuse_sharded,
    step_size,
    update,
)

__all__ = ["FusedAdamW"]


class FusedAdamW:
    """The formula of `hpex.optimizers.FusedAdamW`, called with gradients; no torch.optim.Optimizer.

    The step count of each parameter lies in `state[p]["step"]`, and the first parameter's holds for all.
    """

    def __init__(
        self,
        params: list[torch.Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        _allow_empty_param_list: bool = False,
        moments_dtype: Moments = None,
    ) -> None:
        check(lr, betas, eps)
        if not weight_decay >= 0:
            raise ValueError(f"weight_decay is {weight_decay}, but it has to be 0 or more.")
        if not params and not _allow_empty_param_list:
            raise ValueError("FusedAdamW was given no parameters.")
        self.defaults = {"lr": lr, "eps": eps, "beta1": betas[0], "beta2": betas[1], "weight_decay": weight_decay}
        self.amsgrad = self.maximize = False
        self.moments_dtype = checked_types(moments_dtype)
        self.state: dict[torch.Tensor, dict[str, Any]] = {}
        self.param_group = {"params": params}

    def step_param(self, param: torch.Tensor, grad: torch.Tensor | None) -> None:
        """One parameter's step, which [bridge]'s class does not have either."""
        raise RuntimeError("This FusedAdamW has no step_param(): call step() with the gradients of all parameters.")

    def step(self, gradients: Sequence[torch.Tensor | None]) -> None:
        """One update of the parameters whose gradient is not None; gradients in the parameters' order."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                f"There are {len(params)} parameters and {len(gradients)} gradients, but one is due for each."
            )
        given = [(p, gradient) for p, gradient in zip(params, gradients, strict=True) if gradient is not None]
        for p, _ in given:
            refuse_sharded(p)
            if p not in self.state:
                first, second = moment_types(self.moments_dtype, p.dtype)
                moments = {"exp_avg": torch.zeros_like(p, dtype=first), "exp_avg_sq": torch.zeros_like(p, dtype=second)}
                self.state[p] = {"step": torch.tensor(0.0), **moments}
            self.state[p]["step"] += 1
        betas = (self.defaults["beta1"], self.defaults["beta2"])
        size = step_size(self.defaults["lr"], betas, int(self.state[given[0][0]]["step"]))
        kept = 1 - self.defaults["weight_decay"] * self.defaults["lr"]
        for p, gradient in given:
            update(p, gradient, self.state[p], size, betas, self.defaults["eps"], kept)
