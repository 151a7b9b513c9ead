"""The optimizer that a device does best."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

    from gaudi3_scale.config import TrainConfig


class GaudiOptimizer:
    """Makers of optimizers; what they return is an ordinary `torch.optim.Optimizer`."""

    @staticmethod
    def FusedAdamW(
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        use_habana: bool = True,
        fused: bool | None = None,
    ) -> torch.optim.Optimizer:
        """AdamW of few operations: Habana's on HPU (from `habana_frameworks.torch.hpex.optimizers`), torch's elsewhere.

        Args:
            params: parameters or groups of them, on the device they will be trained on.
            lr: learning rate.
            betas: decay of the running averages of the gradient and of its square.
            eps: added to the denominator; the default, as that of the weight decay, is Habana's.
            weight_decay: share of the weights taken off per step, times the learning rate (Loshchilov and Hutter,
                "Decoupled Weight Decay Regularization", 2019).
            use_habana: False takes torch's on HPU too.
            fused: False takes torch's step of several kernels; None = fused where torch has it, which is on CPU and
                CUDA, for sharded parameters too.

        Sharded parameters (DTensor) take torch's on HPU, with operations on lists of tensors (`foreach`): about a dozen
        per step and group, where single tensors take as many each. Habana's kernel has no rule for shards, and the
        class of `habana_frameworks.torch.hpex.optimizers.distributed` is no `torch.optim.Optimizer`.
        """
        import torch
        from torch.distributed.tensor import DTensor

        groups: list[Any] = [
            {**group, "params": list(group["params"])} if isinstance(group, dict) else group for group in params
        ]
        flat = [p for group in groups for p in (group["params"] if isinstance(group, dict) else [group])]
        kinds = {p.device.type for p in flat}
        sharded = any(isinstance(p, DTensor) for p in flat)
        settings: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        if use_habana and kinds == {"hpu"} and not sharded:
            habana = importlib.import_module("habana_frameworks.torch.hpex.optimizers")
            optimizer: torch.optim.Optimizer = habana.FusedAdamW(groups, **settings)
            return optimizer
        if fused is None:
            fused = kinds <= {"cpu", "cuda"}
        return torch.optim.AdamW(groups, fused=fused, foreach=None if fused else True, **settings)


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Fused AdamW over what is trained; only matrices decay."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return GaudiOptimizer.FusedAdamW(groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon)
