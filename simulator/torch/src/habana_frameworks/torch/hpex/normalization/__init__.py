"""Clipping of gradients, and RMS normalisation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

__all__ = ["FusedClipNorm", "FusedRMSNorm"]


class FusedClipNorm:
    """Clips the gradients of the parameters, to `max_norm` in all (2-norm), in place."""

    def __init__(self, parameters: Iterable[torch.Tensor], max_norm: float) -> None:
        self.max_norm = float(max_norm)

    def clip_norm(self, parameters: Iterable[torch.Tensor] | torch.Tensor) -> torch.Tensor:
        """Clip, and return the norm before."""
        return torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)


class FusedRMSNorm:
    """`x / sqrt(mean(x²) + eps) * weight` over the last dimension, computed in float32."""

    @staticmethod
    def apply(
        x: torch.Tensor, weight: torch.Tensor, eps: float, use_stages: bool = False, bwd_mode: int = 0, *more: Any
    ) -> torch.Tensor:
        """Normalise `x` (..., n) and scale it with `weight` (n,); the result has the type of `x`."""
        wide = x.float()
        normalised = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        return weight * normalised.to(x.dtype)
