"""Clipping of gradients, and RMS normalisation. Signatures: [bridge] 1.19, `hpex/normalization`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import torch

from habana_frameworks.torch.core.step_closure import _mark_step_if_lazy

__all__ = ["FusedClipNorm", "FusedRMSNorm", "RmsNormBwdMode"]


class FusedClipNorm:
    """Clips the gradients of the parameters, to `max_norm` in all (2-norm), in place."""

    def __init__(self, parameters: Iterable[torch.Tensor], max_norm: float) -> None:
        self.max_norm = float(max_norm)
        self.norm_type = 2.0

    def clip_norm(self, parameters: Iterable[torch.Tensor] | torch.Tensor) -> torch.Tensor:
        """Clip, and return the norm before."""
        _mark_step_if_lazy()
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)
        _mark_step_if_lazy()
        return norm


class RmsNormBwdMode(Enum):
    """How the backward pass is cut for the card, which changes no result here."""

    DEFAULT = 0
    STATIC_CASE_WIDTH_PARTITIONING = 1


class FusedRMSNorm:
    """`x / sqrt(mean(x²) + eps) * weight` over the last dimension, computed in float32."""

    @staticmethod
    def apply(
        data_in: torch.Tensor,
        gamma: torch.Tensor,
        eps: float,
        use_stages: bool = True,
        bwd_mode: Any = 0,
        fast_math: bool = False,
        /,
    ) -> torch.Tensor:
        """Normalise `data_in` (..., n) and scale it with `gamma` (n,); the result has the type of `data_in`."""
        wide = data_in.float()
        normalised = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        return gamma * normalised.to(data_in.dtype)
