"""What is learnt: the loss of a batch of samples, in nats per predicted token."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gaudi3_scale.config import Config, ModelConfig
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.data.pair_samples import ROWS
from gaudi3_scale.data.sample_batch import document_arguments
from gaudi3_scale.models.build import architecture, is_masked
from gaudi3_scale.models.chunked import chunks_for, mean_loss
from gaudi3_scale.models.one_sequence import one_sequence_per_row
from gaudi3_scale.models.preference import PreferenceLoss


def sample_loss(model: nn.Module, samples: Tensor, chunks: int = 0) -> Tensor:
    """Mean cross-entropy of the predictions.

    Causal: samples (B, T + 1) int64 give B * T predictions, (B, 2, T), inputs and labels, and (B, 3, T), positions in
    the document too, as many as there are labels. Masked: (B, 2, T), likewise. `chunks` is `memory.loss_chunks`.
    """
    return losses(model, samples, chunks)[0]


def losses(model: nn.Module, samples: Tensor, chunks: int = 0) -> tuple[Tensor, Tensor | None]:
    """The loss above, and while training what is added to it: for a mixture of experts the load-balancing loss of its
    router times the configuration's `router_aux_loss_coef` (Fedus et al., "Switch Transformers", 2021, equation 4).
    """
    coefficient: Any = None
    arguments: dict[str, Any] = {}
    if samples.ndim == 3:
        inputs, labels = samples[:, 0], samples[:, 1]
    else:
        inputs, labels = samples[:, :-1], samples[:, 1:]
    if samples.ndim == 2 or not is_masked(model.config):
        coefficient = getattr(model.config, "router_aux_loss_coef", None) if model.training else None
        arguments = {"use_cache": False} | ({"output_router_logits": True} if coefficient else {})
        arguments |= document_arguments(samples, getattr(model.config, "_attn_implementation", None))

    def forward() -> Any:
        with one_sequence_per_row():
            return model(input_ids=inputs, **arguments)

    parts = chunks_for(model, labels.numel(), chunks)
    found = mean_loss(model, labels, parts, forward) if parts > 1 else None
    if found is not None:
        loss, output = found
    else:
        output = forward()
        logits = output.logits.flatten(0, 1).float()
        if samples.ndim == 3:  # a row may have nothing to learn
            total = nn.functional.cross_entropy(logits, labels.flatten(), ignore_index=IGNORED, reduction="sum")
            loss = total / (labels != IGNORED).sum().clamp(min=1)
        else:
            loss = nn.functional.cross_entropy(logits, labels.flatten())
    return loss, coefficient * output.aux_loss if coefficient else None


def training_loss(model: nn.Module, samples: Tensor, chunks: int = 0) -> Tensor:
    """What the gradients are of: the loss and all that is added to it."""
    loss, extra = losses(model, samples, chunks)
    return loss if extra is None else loss + extra


def loss_of(config: Config) -> Callable[[nn.Module, Tensor], Tensor]:
    """What a job's gradients are of, by the model and a batch of `batch_shape`."""
    if config.data.prefers:
        return PreferenceLoss.of(config).training_loss
    return partial(training_loss, chunks=config.memory.loss_chunks)


def example(config: ModelConfig, batch_size: int, device: Any = None) -> Tensor:
    """A batch of the right shape, of zeros; each token of a masked one is to be guessed."""
    if is_masked(architecture(config)):
        return torch.zeros((batch_size, 2, config.sequence_length), dtype=torch.int64, device=device)
    return torch.zeros((batch_size, config.sequence_length + 1), dtype=torch.int64, device=device)


def batch_shape(config: Config, micro_batch: int) -> tuple[int, ...]:
    """Of a micro-batch of the job's data, as `data.samples` makes it."""
    length = config.model.sequence_length
    if is_masked(architecture(config.model)):
        return micro_batch, 2, length
    if config.data.documents:
        return micro_batch, 3, length
    if config.data.prefers:
        return micro_batch, ROWS, length
    return (micro_batch, length + 1) if config.data.contents == {"text"} else (micro_batch, 2, length)
