"""Fused operations by their older names."""

from __future__ import annotations

import torch

from gaudi3_hpu_simulator.errors import refusing


def fused_norm(grads: list[torch.Tensor], max_norm: torch.Tensor, norm_type: float) -> torch.Tensor:
    """Clip the gradients to `max_norm` in all, in place; returns the norm before."""
    total = torch.nn.utils.get_total_norm(grads, norm_type)
    factor = (max_norm.to(total.dtype) / (total + 1e-6)).clamp(max=1.0)
    for gradient in grads:
        gradient.mul_(factor.to(gradient.dtype))
    return total


random_seed = refusing("random_seed", "use torch.Generator")
