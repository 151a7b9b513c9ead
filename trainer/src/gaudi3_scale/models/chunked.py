"""Cross-entropy without the logits of all tokens at once.

The output layer and the loss are computed for a few tokens at a time, and again in backward, so that the largest
tensor is of (tokens of a chunk, vocabulary) in place of (all tokens, vocabulary) in float32, twice. torchtitan
("ChunkedLossWrapper") and litgpt ("chunked_cross_entropy") do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gaudi3_scale.data.masking import IGNORED

CHUNK_BYTES = 256 * 2**20
"""Float32 logits of a chunk, at most, where the number of chunks is not given."""
SCALINGS = {"final_logit_softcapping": (None,), "logits_scaling": (None, 1, 1.0), "logit_scale": (None, 1, 1.0)}
"""Settings of transformers' models that change the logits after the output layer, and values that change nothing."""


def chunks_for(model: Any, tokens: int, wanted: int = 0) -> int:
    """Into how many parts to cut so many tokens: `wanted`, or for 0 the least power of two that keeps CHUNK_BYTES.

    1 where the loss is not computed from what the output layer gives alone.
    """
    layer = _output_layer(model)
    if layer is None or any(getattr(model.config, name, None) not in SCALINGS[name] for name in SCALINGS):
        return 1
    if wanted:
        return min(wanted, tokens)
    weight: Any = layer.weight
    vocabulary, chunks = int(weight.shape[0]), 1
    while -(-tokens // chunks) * vocabulary * 4 > CHUNK_BYTES and chunks < tokens:
        chunks *= 2
    return min(chunks, tokens)


def mean_loss(model: nn.Module, labels: Tensor, chunks: int, forward: Callable[[], Any]) -> tuple[Tensor, Any]:
    """Mean cross-entropy over the labels that are not IGNORED, and the model's output.

    Args:
        model: one for which `chunks_for` gives more than 1.
        labels: (B, T) int64.
        chunks: parts into which the B * T tokens are cut.
        forward: calls the model; the logits of its output are no logits, but the loss.
    """
    layer = _output_layer(model)
    assert layer is not None, "chunks_for gives 1 without"
    with _loss_in_place_of_logits(layer, labels.flatten(), chunks) as computed:
        output = forward()
    (loss,) = computed
    if output.logits is not loss:
        raise AssertionError(f"{type(model).__name__} changes the logits after its output layer")
    return loss.reshape(()), output


@contextmanager
def _loss_in_place_of_logits(layer: nn.Module, labels: Tensor, chunks: int) -> Iterator[list[Tensor]]:
    """Within the model's own forward pass, so that whoever shards it has its weights at hand there."""
    project = layer.forward
    computed: list[Tensor] = []

    def part(hidden: Tensor, wanted: Tensor) -> Tensor:
        logits = project(hidden).float()
        return nn.functional.cross_entropy(logits, wanted, ignore_index=IGNORED, reduction="sum")

    def forward(hidden: Tensor) -> Tensor:
        total = torch.zeros((), device=hidden.device)
        rows = hidden.flatten(0, -2)
        for some, wanted in zip(rows.chunk(chunks), labels.chunk(chunks), strict=True):
            total = total + checkpoint(part, some, wanted, use_reentrant=False, preserve_rng_state=False)
        computed.append((total / (labels != IGNORED).sum().clamp(min=1)).reshape(1, 1, 1))
        return computed[0]

    layer.forward = forward
    try:
        yield computed
    finally:
        layer.forward = project


def _output_layer(model: Any) -> nn.Module | None:
    find = getattr(model, "get_output_embeddings", None)
    layer = find() if find is not None else None
    return layer if isinstance(layer, nn.Module) else None
