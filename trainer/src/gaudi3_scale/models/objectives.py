"""What is learnt: the loss of a batch of samples."""

from __future__ import annotations

from torch import Tensor, nn


def sample_loss(model: nn.Module, samples: Tensor) -> Tensor:
    """Mean cross-entropy in nats per byte; samples (B, T + 1) int64 give B * T predictions."""
    logits = model(input_ids=samples[:, :-1], use_cache=False).logits
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), samples[:, 1:].flatten())
