"""Rotary position embeddings (Su et al., "RoFormer"), by halves or by pairs of neighbours."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import torch


class RotaryPosEmbeddingMode(IntEnum):
    """Which elements turn together: the two halves (GPT-NeoX, Llama), or neighbours (GPT-J)."""

    BLOCKWISE = 0
    PAIRWISE = 1


def _turned(x: torch.Tensor, mode: RotaryPosEmbeddingMode) -> torch.Tensor:
    if mode == RotaryPosEmbeddingMode.BLOCKWISE:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def apply_rotary_pos_emb(
    p: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    position_ids: torch.Tensor | None = None,
    offset: int = 0,
    mode: RotaryPosEmbeddingMode = RotaryPosEmbeddingMode.BLOCKWISE,
) -> torch.Tensor:
    """Turn `p` (..., n) by the angles of `cos` and `sin`, which broadcast against it.

    With `position_ids` (batch, sequence) their rows are looked up, for a `p` of (batch, heads, sequence, n); else
    `offset` skips that many rows of theirs.
    """
    if position_ids is not None:
        table = (-1, cos.size(-1))
        cos = cos.reshape(table)[position_ids].unsqueeze(1)
        sin = sin.reshape(table)[position_ids].unsqueeze(1)
    elif offset:
        cos, sin = (part.narrow(-2, offset, p.size(-2)) for part in (cos, sin))
    return p * cos + _turned(p, mode) * sin


class RotaryPosEmbeddingHelperV1:
    """By halves, with rows from `offset`."""

    @staticmethod
    def apply(p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, offset: int = 0, *more: Any) -> torch.Tensor:
        """See `apply_rotary_pos_emb`."""
        return apply_rotary_pos_emb(p, cos, sin, None, offset)


class RotaryPosEmbeddingHelperV2:
    """By halves, with the rows of `position_ids`."""

    @staticmethod
    def apply(
        p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, position_ids: torch.Tensor | None = None, *more: Any
    ) -> torch.Tensor:
        """See `apply_rotary_pos_emb`."""
        return apply_rotary_pos_emb(p, cos, sin, position_ids)


class RotaryPosEmbeddingHelperV3:
    """By pairs of neighbours, with the rows of `position_ids`."""

    @staticmethod
    def apply(
        p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, position_ids: torch.Tensor | None = None, *more: Any
    ) -> torch.Tensor:
        """See `apply_rotary_pos_emb`."""
        return apply_rotary_pos_emb(p, cos, sin, position_ids, mode=RotaryPosEmbeddingMode.PAIRWISE)
