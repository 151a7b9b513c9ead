"""Rotary position embeddings (Su et al., "RoFormer"), by halves or by pairs of neighbours.

Signatures and types of results: [bridge] 1.19, `hpex/kernels/RotaryPosEmbeddingHelper.py`. The offset counts columns of
the tables, as in the reference of [bridge]'s `test_hpu_rotary_pos_embedding_helper.py`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch


class RotaryPosEmbeddingMode(Enum):
    """Which elements turn together: the two halves (GPT-NeoX, Llama), or neighbours (GPT-J)."""

    BLOCKWISE = 0
    PAIRWISE = 1


# position_ids, offset, mode
_DEFAULTS = (None, 0, RotaryPosEmbeddingMode.BLOCKWISE)


def apply_rotary_pos_emb(p: torch.Tensor, *args: Any) -> Any:
    """Turn `p` (..., n) by angles given as (cos, sin[, position_ids[, offset[, mode]]]) or as one rope_cache.

    With position_ids (batch, sequence) their rows of the tables are taken, for a `p` of (batch, heads, sequence, n);
    else the tables broadcast, without their first `offset` columns. A rope_cache is that of
    `RotaryPosEmbeddingHelperV3`. Where anything is float32, so is the result.
    """
    if not args:
        raise TypeError("apply_rotary_pos_emb() needs cos and sin, or a rope_cache, after the tensor.")
    if len(args) == 1:
        return RotaryPosEmbeddingHelperV3.apply(p, args[0])
    cos, sin, position_ids, offset, mode = (*args, *_DEFAULTS[len(args) - 2 :])[:5]
    if torch.float32 in (p.dtype, cos.dtype, sin.dtype):
        p = p.float()
    cos, sin = cos.to(p.dtype), sin.to(p.dtype)
    if position_ids is not None:
        table = (-1, cos.size(-1))
        cos = cos.reshape(table)[position_ids].unsqueeze(1)
        sin = sin.reshape(table)[position_ids].unsqueeze(1)
    elif offset:
        cos, sin = (part.narrow(-1, offset, p.size(-1)) for part in (cos, sin))
    return p * cos + _turned(p, mode) * sin


def _turned(x: torch.Tensor, mode: RotaryPosEmbeddingMode) -> torch.Tensor:
    if mode is RotaryPosEmbeddingMode.BLOCKWISE:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


class RotaryPosEmbeddingHelperV1:
    """By halves, with tables from column `offset`."""

    @staticmethod
    def apply(p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, offset: int, /) -> Any:
        """See `apply_rotary_pos_emb`."""
        return apply_rotary_pos_emb(p, cos, sin, None, offset)


class RotaryPosEmbeddingHelperV2:
    """By halves, with the rows of `position_ids`."""

    @staticmethod
    def apply(p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, position_ids: torch.Tensor | None, /) -> Any:
        """See `apply_rotary_pos_emb`."""
        return apply_rotary_pos_emb(p, cos, sin, position_ids)


class RotaryPosEmbeddingHelperV3:
    """By pairs of neighbours, with ChatGLM's cache of angles."""

    @staticmethod
    def apply(p: torch.Tensor, rope_cache: torch.Tensor, /) -> Any:
        """Turn the first columns of `p` (sequence, batch, heads, n), twice as many as `rope_cache` has pairs.

        `rope_cache` is (positions, [batch,] pairs, 2) with cosine and sine in its last dimension; the columns behind
        stay as they are.
        """
        length, heads, turned = p.size(0), p.size(2), rope_cache.shape[-2] * 2
        first, rest = p[..., :turned], p[..., turned:]
        cache = rope_cache[:length].reshape(length, -1, 1, turned // 2, 2)
        cos, sin = (cache[..., part].repeat_interleave(2, dim=-1).to(p.dtype) for part in (0, 1))
        shaped = first.reshape(length, -1, heads, turned)
        result = shaped * cos + _turned(shaped, RotaryPosEmbeddingMode.PAIRWISE) * sin
        return torch.cat((result, rest), dim=-1) if rest.size(-1) else result
