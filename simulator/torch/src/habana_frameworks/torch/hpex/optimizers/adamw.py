"""AdamW as Gaudi's kernel computes it.

Formula, types and layout of the state: [bridge] 1.19, `hpex/optimizers/FusedAdamW.py`,
`hpex/optimizers/distributed/FusedAdamW.py` and `hpu_ops/backend/optimizer_adamw_gen.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from gaudi3_hpu_simulator.errors import refuse
from habana_frameworks.torch.core.step_closure import _mark_step_if_lazy

Moments = torch.dtype | tuple[torch.dtype, torch.dtype] | None
_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


class FusedAdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay, whose eps is not corrected for bias as torch's is.

    With t the group's `step`: p ← p·(1 - wd·lr) - lr·√(1-β2ᵗ)/(1-β1ᵗ) · m/(√v + eps). `state[p]["step"]` stays 0.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
        moments_dtype: Moments = None,
    ) -> None:
        check(lr, betas, eps)
        self.moments_dtype = checked_types(moments_dtype)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters; the closure's result, if one is given."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            _mark_step_if_lazy()
            trained = [p for p in group["params"] if p.grad is not None]
            for p in trained:
                refuse_sharded(p)
                if not self.state[p]:
                    first, second = moment_types(self.moments_dtype, p.dtype)
                    self.state[p].update(
                        step=0, exp_avg=torch.zeros_like(p, dtype=first), exp_avg_sq=torch.zeros_like(p, dtype=second)
                    )
            if trained:
                group["step"] = group.get("step", 0) + 1
                size = step_size(group["lr"], group["betas"], group["step"] if _corrected(group) else None)
                # The kernel is handed both factors in the type of the first weight: small decays are lost in bfloat16.
                size, kept = (_rounded(value, trained[0]) for value in (size, 1 - group["weight_decay"] * group["lr"]))
                for p in trained:
                    update(p, p.grad, self.state[p], size, group["betas"], group["eps"], kept)
        _mark_step_if_lazy()
        return loss


def _rounded(value: float, like: torch.Tensor) -> float:
    return torch.tensor(value, dtype=like.dtype, device="cpu").item()


def _corrected(group: dict[str, Any]) -> bool:
    """Groups of older checkpoints have `correct_bias`, those of torch's AdamW neither key."""
    return bool(group.get("bias_correction", group.get("correct_bias", True)))


def check(lr: float, betas: tuple[float, float], eps: float) -> None:
    """ValueError for settings that no AdamW has."""
    if not lr >= 0 or not eps >= 0:
        raise ValueError(f"lr is {lr} and eps {eps}, but both have to be 0 or more.")
    if not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas are {betas}, but each has to be 0 or more, and below 1.")


def checked_types(moments: Moments) -> Moments:
    """The types, unless one is fp8."""
    for kind in moments if isinstance(moments, tuple) else (moments,):
        if kind in _FP8:
            raise refuse(f"FusedAdamW with moments in {kind}", "use bfloat16 or leave moments_dtype out")
    return moments


def moment_types(moments: Moments, own: torch.dtype) -> tuple[torch.dtype, torch.dtype]:
    """Types of the two moments of a parameter of type `own`."""
    if isinstance(moments, tuple):
        return moments
    return (own, own) if moments is None else (moments, moments)


def step_size(lr: float, betas: tuple[float, float], step: int | None) -> float:
    """The factor before m/(√v + eps); without correction of the bias where there is no step."""
    if step is None:
        return lr
    return lr * math.sqrt(1 - betas[1] ** step) / (1 - betas[0] ** step)


@torch.no_grad()
def update(
    p: torch.Tensor,
    gradient: torch.Tensor,
    state: dict[str, Any],
    size: float,
    betas: tuple[float, float],
    eps: float,
    kept: float,
) -> None:
    """One parameter's step; `kept` is what weight decay leaves of the weight.

    The update uses the moments before they are rounded to the type they are kept in.
    """
    if gradient.is_sparse:
        raise RuntimeError("FusedAdamW takes no sparse gradients: use torch.optim.SparseAdam.")
    kind = torch.promote_types(p.dtype, state["exp_avg"].dtype)
    scaled = gradient.to(kind)
    first = state["exp_avg"].to(kind) * betas[0] + scaled * (1 - betas[0])
    second = state["exp_avg_sq"].to(kind) * betas[1] + scaled * scaled * (1 - betas[1])
    state["exp_avg"].copy_(first)
    state["exp_avg_sq"].copy_(second)
    p.mul_(kept)
    p.add_(first / (second.sqrt() + eps) * -size)


def refuse_sharded(parameter: torch.Tensor) -> None:
    """DTensor: the moments of [bridge]'s FusedAdamW have the whole shape, and its kernel has no rule for shards."""
    if type(parameter.data).__name__ == "DTensor":
        raise refuse("FusedAdamW for sharded parameters (DTensor)", "use torch.optim.AdamW")
