"""What a batch of `Samples.fetch` is to a causal transformers model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

POSITIONS = 2


def document_arguments(samples: Tensor, attention: str | None = None) -> dict[str, Any]:
    """Arguments of the model for samples (B, 3, T) of inputs, labels and positions; none for others.

    position_ids (B, T), and attention_mask (B, 1, T, T), true where a token may look: at itself and those before it in
    its document. `attention` is the model's implementation; "eager" adds its mask to the scores.
    """
    if samples.ndim != 3 or samples.shape[1] <= POSITIONS:
        return {}
    positions = samples[:, POSITIONS]
    documents = (positions == 0).cumsum(1)
    mask = (documents[:, :, None] == documents[:, None, :]).tril().unsqueeze(1)
    if attention == "eager":
        zero = torch.zeros((), device=samples.device)
        return {"position_ids": positions, "attention_mask": torch.where(mask, zero, torch.finfo(zero.dtype).min)}
    return {"position_ids": positions, "attention_mask": mask}
