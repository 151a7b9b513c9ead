"""Experts computed one after the other, in shapes that do not depend on what the router finds.

transformers' `eager` experts take the tokens that were sent to them, whose number no fake tensor knows. Here every
second expert gets half as many again as its share, and those between them the rest: what one expert needs for a moment
grows with its tokens, and no router is quite even. The operations are the same. A device whose products of all experts
are not left to one call computes them so (`memory.apply`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

NAME = "gaudi_planned"
"""In transformers' registry."""


def use_even_experts(model: nn.Module) -> bool:
    """Have a transformers model with experts compute them so; False where it has none that can be set."""
    config = getattr(model, "config", None)
    if getattr(config, "_experts_implementation", None) != "grouped_mm":
        return False
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    ALL_EXPERTS_FUNCTIONS.register(NAME, _experts)
    named: Any = model
    named.set_experts_implementation(NAME)
    return True


def _experts(self: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """Hidden states (S, H), experts and weights of each token (S, K); gives (S, H)."""
    result = torch.zeros_like(hidden_states)
    tokens, chosen = top_k_index.shape
    with torch.no_grad():
        mask = nn.functional.one_hot(top_k_index, num_classes=self.num_experts + 1).permute(2, 1, 0)
        mask.sum(dim=(-1, -2))
    share, odd = divmod(tokens * chosen, self.num_experts)
    for expert in range(self.num_experts):
        more = share // 2 if expert ^ 1 < self.num_experts else 0
        rows = share + (expert < odd) + (more if expert % 2 else -more)
        token = torch.empty(rows, dtype=torch.int64, device=hidden_states.device)
        place = torch.empty_like(token)
        inner = self._apply_gate(nn.functional.linear(hidden_states[token], self.gate_up_proj[expert]))
        out = nn.functional.linear(inner, self.down_proj[expert]) * top_k_weights[token, place, None]
        result.index_add_(0, token, out.to(result.dtype))
    return result
