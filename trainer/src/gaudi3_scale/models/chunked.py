"""Cross-entropy without the logits of all tokens at once.

The output layer and the loss are computed for a few tokens at a time, and again in backward, so that the largest
tensor is of (tokens of a chunk, vocabulary) in place of (all tokens, vocabulary) in float32, twice. torchtitan
("ChunkedLossWrapper") and litgpt ("chunked_cross_entropy") do the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.models.activation_checkpoint import checkpoint

log = logging.getLogger(__name__)

CHUNK_BYTES = 256 * 2**20
"""Float32 logits of a chunk, at most, where the number of chunks is not given."""
SCALINGS = {"final_logit_softcapping": (None,), "logits_scaling": (None, 1, 1.0), "logit_scale": (None, 1, 1.0)}
"""Settings of transformers' models that change the logits after the output layer, and values that change nothing."""
Parts = Callable[[str], Iterator[Tensor]]
"""The cross-entropy of each chunk, reduced as torch names it."""
Loss = Callable[[Parts, Tensor], Tensor]
"""Of the chunks and all labels, with the three dimensions that logits have."""
_LAST: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""Whether what a model's output layer gives are its logits, as its first pass has shown."""


def chunks_for(model: Any, tokens: int, wanted: int = 0) -> int:
    """Into how many parts to cut this many tokens: `wanted`, or for 0 the least power of two that keeps CHUNK_BYTES.

    1 where the loss is not computed from what the output layer gives alone.
    """
    layer = _output_layer(model)
    if layer is None or _LAST.get(model) is False:
        return 1
    if any(getattr(model.config, name, None) not in SCALINGS[name] for name in SCALINGS):
        return 1
    if wanted:
        return min(wanted, tokens)
    weight: Any = layer.weight
    vocabulary, chunks = int(weight.shape[0]), 1
    while -(-tokens // chunks) * vocabulary * 4 > CHUNK_BYTES and chunks < tokens:
        chunks *= 2
    return min(chunks, tokens)


def mean_loss(model: nn.Module, labels: Tensor, chunks: int, forward: Callable[[], Any]) -> tuple[Tensor, Any] | None:
    """Mean cross-entropy over the labels that are not IGNORED, and the model's output.

    None where the model changes its logits after the output layer, or computes them without it. Its first pass shows
    that; the random state is then as before, and from now on `chunks_for` gives 1.

    Args:
        model: one for which `chunks_for` gives more than 1.
        labels: (B, T) int64.
        chunks: parts into which the B * T tokens are cut.
        forward: calls the model; the logits of its output are no logits, but the loss.
    """
    found = _computed(model, labels, chunks, forward, _mean)
    return None if found is None else (found[0].reshape(()), found[1])


def token_losses(
    model: nn.Module, labels: Tensor, chunks: int, forward: Callable[[], Any]
) -> tuple[Tensor, Any] | None:
    """As `mean_loss`, but the cross-entropy of each label, (B, T), 0 where it is IGNORED."""
    found = _computed(model, labels, chunks, forward, _losses)
    return None if found is None else (found[0].reshape(labels.shape), found[1])


def _computed(
    model: nn.Module, labels: Tensor, chunks: int, forward: Callable[[], Any], loss: Loss
) -> tuple[Tensor, Any] | None:
    layer = _output_layer(model)
    assert layer is not None, "chunks_for gives 1 without"
    before = None if model in _LAST else _random_states(labels.device)
    with _loss_in_place_of_logits(layer, labels.flatten(), chunks, loss) as computed:
        output = forward()
    _LAST[model] = len(computed) == 1 and output.logits is computed[0]
    if not _LAST[model]:
        if before is not None:
            _set_random_states(labels.device, before)
        log.warning(
            "memory.loss_chunks has no effect: %s computes its logits with more than its output layer",
            type(model).__name__,
        )
        return None
    return computed[0], output


def _mean(parts: Parts, labels: Tensor) -> Tensor:
    total = torch.zeros((1, 1, 1), device=labels.device)  # not reshaped later: FSDP warns of views
    for part in parts("sum"):
        total = total + part
    return total / (labels != IGNORED).sum().clamp(min=1)


def _losses(parts: Parts, labels: Tensor) -> Tensor:
    return torch.cat([part[None, :, None] for part in parts("none")], 1)


def _random_states(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    if device.type not in ("cpu", "meta"):
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def _set_random_states(device: torch.device, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.get_device_module(device).set_rng_state(state, device)


@contextmanager
def _loss_in_place_of_logits(layer: nn.Module, labels: Tensor, chunks: int, loss: Loss) -> Iterator[list[Tensor]]:
    """Within the model's own forward pass, so that whoever shards it has gathered its weights."""
    project = layer.forward
    computed: list[Tensor] = []

    def part(hidden: Tensor, wanted: Tensor, reduction: str) -> Tensor:
        logits = project(hidden).float()
        return nn.functional.cross_entropy(logits, wanted, ignore_index=IGNORED, reduction=reduction)

    def forward(hidden: Tensor) -> Tensor:
        rows = hidden.flatten(0, -2)

        def parts(reduction: str) -> Iterator[Tensor]:
            for some, wanted in zip(rows.chunk(chunks), labels.chunk(chunks), strict=True):
                yield checkpoint(part, some, wanted, reduction, use_reentrant=False, preserve_rng_state=False)

        computed.append(loss(parts, labels))
        return computed[0]

    own = vars(layer).get("forward")  # what something else has set; else the class's is found again below
    layer.forward = forward
    try:
        yield computed
    finally:
        if own is None:
            del layer.forward
        else:
            layer.forward = own


def _output_layer(model: Any) -> nn.Module | None:
    find = getattr(model, "get_output_embeddings", None)
    layer = find() if find is not None else None
    return layer if isinstance(layer, nn.Module) else None
