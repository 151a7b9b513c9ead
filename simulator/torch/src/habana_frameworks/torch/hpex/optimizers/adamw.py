"""AdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class FusedAdamW(torch.optim.AdamW):
    """torch's AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization") under Habana's signature.

    Unlike torch's, weight decay is 0 unless given, and `eps` 1e-6. `bias_correction=False` leaves Adam's moments
    uncorrected.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
        moments_dtype: torch.dtype | None = None,
    ) -> None:
        if moments_dtype not in (None, torch.float32):
            from gaudi3_hpu_simulator.errors import refuse

            raise refuse(f"FusedAdamW with moments in {moments_dtype}", "leave moments_dtype out")
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=False)
        for group in self.param_groups:
            group.setdefault("bias_correction", bias_correction)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters."""
        if all(group["bias_correction"] for group in self.param_groups):
            return super().step(closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update_uncorrected(parameter, group)
        return loss

    def _update_uncorrected(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        gradient = parameter.grad
        assert gradient is not None
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.addcdiv_(state["exp_avg"], state["exp_avg_sq"].sqrt().add_(group["eps"]), value=-group["lr"])
