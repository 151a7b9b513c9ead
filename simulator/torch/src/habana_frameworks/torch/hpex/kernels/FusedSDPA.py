"""FusedSDPA: attention that never holds the whole score matrix, on Gaudi. Here it is torch's.

Argument order and the combinations that are excluded: [bridge] 1.19, `hpex/kernels/FusedSDPA.py`.
"""

from __future__ import annotations

from typing import Any

import torch

from gaudi3_hpu_simulator.errors import refuse


def is_gqa(q: torch.Tensor, k: torch.Tensor) -> bool:
    """Whether several query heads share a key head."""
    return q.dim() == 4 and k.shape[1] not in (q.shape[1], 1)


def gqa_input_reshape_fwd(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attention_mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """(batch, heads, ...) as (batch, groups, heads of a group, ...); keys and values have one head per group."""
    groups, heads = k.shape[1], q.shape[1]
    if attention_mask is not None:
        shared = attention_mask.shape[1] != heads
        attention_mask = attention_mask.unsqueeze(1) if shared else _grouped(attention_mask, groups)
    return _grouped(q, groups), k.unsqueeze(2), v.unsqueeze(2), attention_mask


def _grouped(tensor: torch.Tensor, groups: int) -> torch.Tensor:
    return tensor.reshape(tensor.shape[0], groups, -1, *tensor.shape[2:])


def gqa_output_reshape(tensor: torch.Tensor) -> torch.Tensor:
    """Back from (batch, groups, heads of a group, ...) to (batch, heads, ...)."""
    return tensor.flatten(1, 2)


class FusedSDPA:
    """`softmax(q kᵀ · scale + mask) v` by torch.nn.functional.scaled_dot_product_attention.

    `apply` takes its arguments by position, as that of every torch.autograd.Function does.
    """

    @staticmethod
    def apply(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        softmax_mode: str = "None",
        recompute_mode: bool | None = None,
        valid_seq_len: torch.Tensor | None = None,
        seq_padding_type: str = "left",
        return_dropout_mask: bool = False,
        return_attn_probs: bool = False,
        /,
    ) -> torch.Tensor:
        """Attention of (batch, heads, sequence, head size) tensors; fewer key heads than query heads are shared."""
        backward = torch.is_grad_enabled() and any(part.requires_grad for part in (q, k, v))
        recompute = _recompute() if recompute_mode is None else recompute_mode
        if recompute and backward and softmax_mode.lower() == "fast":
            assert is_causal, (
                "In training, FusedSDPA with recomputation has the fast softmax for causal attention only."
            )
        if return_dropout_mask or return_attn_probs:
            raise refuse("dropout mask or probabilities of FusedSDPA", "ask for neither, or run on hardware")
        if valid_seq_len is not None:
            assert is_causal and not backward and attn_mask is None, (
                "FusedSDPA takes lengths of sequences in inference only, for causal attention without a mask."
            )
            attn_mask, is_causal = _valid(q, k, valid_seq_len, seq_padding_type.lower() == "left"), False
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=q.size(1) != k.size(1)
        )


def _recompute() -> Any:
    import habana_frameworks.torch.hpu as hpu

    return hpu.recompute_sdp_enabled()


def _valid(q: torch.Tensor, k: torch.Tensor, lengths: torch.Tensor, padded_left: bool) -> torch.Tensor:
    """What may be attended to: earlier positions that are no padding, and oneself, so that no row is empty."""
    rows, columns = q.size(-2), k.size(-2)
    allowed = torch.ones(rows, columns, dtype=torch.bool, device=q.device).tril()
    position = torch.arange(columns, device=q.device)
    lengths = lengths.to(q.device).reshape(-1, 1, 1, 1)
    inside = position >= columns - lengths if padded_left else position < lengths
    return (allowed & inside) | torch.eye(rows, columns, dtype=torch.bool, device=q.device)
