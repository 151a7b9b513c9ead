"""Attention written out in torch's operations."""

from __future__ import annotations

import math
from typing import Any

import torch


class PySDPA:
    """Attention as a matrix product, a softmax and a matrix product; arguments by position."""

    @staticmethod
    def apply(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        *more: Any,
    ) -> torch.Tensor:
        """Attention of (batch, heads, sequence, head size) tensors."""
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
        if is_causal:
            future = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        if attn_mask is not None:
            scores = scores + attn_mask
        return torch.dropout(scores.softmax(-1), dropout_p, train=True) @ v


class PySDPAHinted(PySDPA):
    """The same, with hints to a compiler that is not here."""
