"""FusedSDPA: attention that never holds the whole score matrix, on Gaudi. Here it is torch's."""

from __future__ import annotations

from typing import Any

import torch


class FusedSDPA:
    """`softmax(q kᵀ · scale + mask) v` by torch.nn.functional.scaled_dot_product_attention."""

    @staticmethod
    def apply(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        softmax_mode: str = "None",
        recompute_mode: Any = None,
        valid_sequence_lengths: torch.Tensor | None = None,
        padding_side: str = "left",
        *more: Any,
    ) -> torch.Tensor:
        """Attention of (batch, heads, sequence, head size) tensors; fewer key heads than query heads are shared."""
        if valid_sequence_lengths is not None:
            from gaudi3_hpu_simulator.errors import refuse

            raise refuse("FusedSDPA with valid_sequence_lengths", "give attn_mask instead")
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=query.size(1) != key.size(1)
        )
