# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Bytes that a model takes of each card when vLLM serves it: weights, cache of keys and values, recurrent state.

Of a config.json as transformers writes it. Formulas: vllm-gaudi v0.26.0, v1/worker/hpu_worker.py and
hpu_model_runner.py (``initialize_kv_cache``), and vLLM's MambaStateShapeCalculator for gated delta nets. Layers with a
sliding window are counted at full length, which is the stricter guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._refusal import Refusal
from .buckets import BLOCK

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_inc": 1, "fp8_e4m3": 1, "float8_e4m3fn": 1}
_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
_LINEAR = "linear_attention"


@dataclass(frozen=True)
class Footprint:
    """Bytes on each card of ``cards`` cards that share one model by tensor parallelism."""

    weights: int
    """Split weights, and keys' and values' projections that every card needs where cards outnumber heads."""
    block: int
    """One block of the cache (128 tokens): keys and values of all layers with attention."""
    state: int
    """Recurrent state of one sequence (layers of linear attention), whatever its length; else 0."""
    attention_layers: int
    linear_layers: int
    layer_groups: int
    """Groups of linear layers that share tensors: each takes a slot per sequence."""

    def fixed_state(self, sequences: int) -> int:
        """State for that many sequences, kept from the start beside the cache (VLLM_COMPACT_GDN, the default)."""
        if not self.linear_layers:
            return 0
        slots = sequences * self.layer_groups + 2
        return math.ceil(slots * self.state / self.layer_groups)


def footprint(config: Mapping[str, Any], weights_bytes: int, cards: int, dtype: str, cache_dtype: str) -> Footprint:
    """What each card holds. ``weights_bytes``: of all weights as served; ``dtype``: of activations and state."""
    text = config.get("text_config") or config
    layers, heads = _number(text, "num_hidden_layers"), _number(text, "num_attention_heads")
    hidden = _number(text, "hidden_size")
    kv_heads = _number(text, "num_key_value_heads", heads)
    head = _number(text, "head_dim", hidden // heads)
    if heads % cards or (kv_heads % cards and cards % kv_heads):
        allowed = [str(n) for n in range(1, 65) if not heads % n and (not kv_heads % n or not n % kv_heads)]
        raise Refusal(
            f"{cards} cards cannot share {heads} attention heads and {kv_heads} key-value heads evenly:"
            f" use {' or '.join(n for n in allowed if int(n) <= max(8, kv_heads))} cards"
        )
    linear = _linear_layers(text, layers)
    attention = layers - linear
    here = max(1, kv_heads // cards)
    size, cached = _bytes(dtype), _bytes(dtype if cache_dtype == "auto" else cache_dtype)
    if rank := _number(text, "kv_lora_rank", 0):
        # Latent attention: one tensor per layer, the same on every card.
        per_token = attention * (rank + _number(text, "qk_rope_head_dim", 0)) * cached
    else:
        per_token = 2 * attention * here * head * cached
    copies = 0 if rank else max(0, here * cards - kv_heads)
    repeated = 2 * attention * hidden * head * copies * size // cards
    groups = max(1, math.ceil(linear / attention)) if linear and attention else max(1, linear and 1)
    return Footprint(
        weights=math.ceil(weights_bytes / cards) + repeated,
        block=per_token * BLOCK,
        state=_state(text, cards, size) * linear if linear else 0,
        attention_layers=attention,
        linear_layers=linear,
        layer_groups=groups,
    )


def longest(config: Mapping[str, Any]) -> int:
    """The length in tokens that the model was made for (max_position_embeddings)."""
    return _number(config.get("text_config") or config, "max_position_embeddings")


def _linear_layers(text: Mapping[str, Any], layers: int) -> int:
    kinds = text.get("layer_types")
    interval = text.get("full_attention_interval")
    if kinds is None and interval and "linear_num_value_heads" in text:
        return layers - layers // int(interval)
    if kinds is None and any("mamba" in key or key in ("ssm_cfg", "hybrid_override_pattern") for key in text):
        raise Refusal(
            f"model type {text.get('model_type')!r} has recurrent layers whose cache is not planned here:"
            " use a model with attention or gated delta nets, or serve it without a plan"
        )
    if kinds is None:
        return 0
    if not isinstance(kinds, (list, tuple)):
        raise Refusal(f"config.json has layer_types {kinds!r}, where a plan needs a list: correct config.json")
    if unknown := sorted(set(map(str, kinds)) - {*_ATTENTION, _LINEAR}):
        raise Refusal(
            f"config.json has layers of type {', '.join(unknown)}, whose cache is not planned here:"
            f" {', '.join((*_ATTENTION, _LINEAR))} are"
        )
    if len(kinds) != layers:
        raise Refusal(f"config.json has num_hidden_layers {layers} and {len(kinds)} layer_types: correct it")
    return sum(1 for kind in kinds if kind == _LINEAR)


def _state(text: Mapping[str, Any], cards: int, size: int) -> int:
    """Bytes per card of one layer's convolution and recurrent state of one sequence."""
    keys = _number(text, "linear_num_key_heads") * _number(text, "linear_key_head_dim")
    value_heads, value_dim = _number(text, "linear_num_value_heads"), _number(text, "linear_value_head_dim")
    kernel = _number(text, "linear_conv_kernel_dim", 4)
    convolution = (2 * keys + value_heads * value_dim) // cards * (kernel - 1) * size
    recurrent = value_heads // cards * value_dim * _number(text, "linear_key_head_dim")
    return convolution + recurrent * _bytes(str(text.get("mamba_ssm_dtype") or "float32"))


def _number(text: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = text.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (value == 0 and default != 0):
        raise Refusal(f"config.json has {key} {value!r}, where a plan needs a positive number: correct config.json")
    return value


def _bytes(dtype: str) -> int:
    name = dtype.replace("torch.", "")
    if name not in BYTES:
        raise Refusal(f"dtype {dtype!r} is not known: use one of {', '.join(BYTES)}")
    # The plugin serves float16 and float32 as bfloat16; state in float32 stays what it is.
    return BYTES[name]
