"""Floating-point operations that a transformer needs per trained token, from its parameters and configuration.

A token is multiplied with every matrix weight once forward and twice backward (gradients of its input and of the
weight), two operations per weight each time: 6 per weight; and attention compares it with S tokens, 12 x layers x
width of all heads x S over forward and backward (PaLM, arXiv:2204.02311, appendix B). Of experts only those count that
a token visits, and a weight that is not trained has no gradient of its own (4 instead of 6). Embedding tables are
looked up, not multiplied; a tied output head is multiplied. Causal attention is not halved, as in PaLM; a sliding
window does bound S.

What activation checkpointing computes again is work of the hardware, not of the model: it counts in HFU, not in MFU.
Norms, activations, softmax and the optimizer are no matrix products and left out, as `FlopCounterMode` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gaudi3_scale.internals import is_wrapped
from gaudi3_scale.models.blocks import repeated_blocks

if TYPE_CHECKING:
    from torch import nn


class UncountableError(ValueError):
    """The model is no transformer of which the operations are known; the message says what was met."""


@dataclass(frozen=True)
class ModelFlops:
    """What one token costs."""

    weights: float
    """Matrix weights that a token is multiplied with."""
    trained_weights: float
    """Those of them that get a gradient."""
    block_weights: float
    """Those of `weights` that are in the repeated blocks, where activation checkpointing is applied."""
    attention: tuple[tuple[int, int | None], ...]
    """For each layer the width of all its heads together, and its sliding window."""

    def per_token(self, sequence_length: int) -> float:
        """Operations that the model needs to learn from one token of a sequence of this length: for MFU."""
        return 4 * self.weights + 2 * self.trained_weights + 12 * self._compared(sequence_length)

    def hardware_per_token(self, sequence_length: int, recomputed: float) -> float:
        """Operations that the device performs if this share of the blocks is run forward twice: for HFU."""
        again = 2 * self.block_weights + 4 * self._compared(sequence_length)
        return self.per_token(sequence_length) + recomputed * again

    def _compared(self, sequence_length: int) -> float:
        return float(sum(width * min(sequence_length, window or sequence_length) for width, window in self.attention))


def count(model: nn.Module) -> ModelFlops:
    """Count a transformers model, sharded or not; every matrix is taken to see every token.

    Raises UncountableError for a model without `config` and for weights that are neither matrices nor experts.
    """
    from torch import nn

    config = getattr(model, "config", None)
    if config is None:
        raise UncountableError(f"{type(model).__name__} has no configuration that says what its attention is")
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    blocks = {id(module) for _, block in repeated_blocks(model) for module in block.modules()}
    share = _expert_share(config)
    total = trained = in_blocks = 0.0
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            continue
        visited = share if "experts" in name.split(".") else 1.0
        for key, weight in module.named_parameters(recurse=False):
            if weight.ndim < 2:
                continue
            if weight.ndim > (3 if visited < 1 or "experts" in name.split(".") else 2):
                raise UncountableError(f"{name}.{key} has {weight.ndim} dimensions and is no matrix")
            used = weight.numel() * visited
            total += used
            trained += used * weight.requires_grad
            in_blocks += used * (id(module) in blocks)
    return ModelFlops(total, trained, in_blocks, _attention(config))


def recomputed_share(model: nn.Module) -> float:
    """Share of the repeated blocks that are run forward again in the backward pass, by this package, transformers or
    torch's wrapper; a block that keeps its products (`selective`) repeats none.
    """
    found = [_recomputed(block) for _, block in repeated_blocks(model)]
    return sum(found) / len(found) if found else 0.0


def _recomputed(block: nn.Module) -> bool:
    level = getattr(block.forward, "gaudi_level", None)  # see memory/checkpointing.py
    wrapped = is_wrapped(block)
    return level == "full" or wrapped or bool(getattr(block, "gradient_checkpointing", False))


def _expert_share(config: Any) -> float:
    """Share of the experts that one token visits."""
    names = ("num_local_experts", "num_experts", "n_routed_experts")
    experts = next((n for name in names if (n := getattr(config, name, None))), None)
    visited = getattr(config, "num_experts_per_tok", None)
    return visited / experts if experts and visited else 1.0


def _head_width(config: Any, heads: int) -> int:
    """Of one head; of latent attention (DeepSeek-V2, arXiv:2405.04434), whose keys and values differ, the mean of both.

    Scores cost the keys' width and their product with the values the values' width.
    """
    if getattr(config, "kv_lora_rank", None):
        return int(config.qk_nope_head_dim + config.qk_rope_head_dim + config.v_head_dim) // 2
    return int(getattr(config, "head_dim", None) or config.hidden_size // heads)


def _attention(config: Any) -> tuple[tuple[int, int | None], ...]:
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    width = heads * _head_width(config, heads)
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    kinds = getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"] * layers
    return tuple((width, window if kind == "sliding_attention" else None) for kind in kinds)
