"""Bytes of a model on each card."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.footprint import footprint, longest

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}
WEIGHTS = 16_060_522_496
HYBRID: dict[str, Any] = {
    "model_type": "qwen3_5",
    "text_config": {
        "hidden_size": 5120,
        "num_hidden_layers": 64,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "layer_types": [*["linear_attention"] * 3, "full_attention"] * 16,
        "linear_num_value_heads": 48,
        "linear_num_key_heads": 16,
        "linear_value_head_dim": 128,
        "linear_key_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 262144,
    },
}


def test_a_block_of_the_plugins_own_log() -> None:
    """Its pages log 1519 blocks for 23.73 GiB of Llama 3.1 8B in bfloat16."""
    assert 1519 * footprint(LLAMA_8B, WEIGHTS, 1, "bfloat16", "auto").block / 2**30 == pytest.approx(23.73, rel=0.001)


def test_cards_share_weights_and_heads() -> None:
    one, four = (footprint(LLAMA_8B, WEIGHTS, cards, "bfloat16", "auto") for cards in (1, 4))
    assert one.weights == WEIGHTS and four.weights == WEIGHTS // 4
    assert four.block * 4 == one.block
    assert footprint(LLAMA_8B, WEIGHTS, 1, "bfloat16", "fp8_inc").block * 2 == one.block


def test_more_cards_than_heads_repeat_keys_and_values() -> None:
    config = {**LLAMA_8B, "num_key_value_heads": 2}
    found = footprint(config, WEIGHTS, 8, "bfloat16", "auto")
    # 6 more heads of keys and of values than the file has, in 32 layers, spread over 8 cards.
    assert found.weights == WEIGHTS // 8 + 2 * 32 * 4096 * 128 * 6 * 2 // 8
    assert found.block == 2 * 32 * 1 * 128 * 2 * 128


def test_linear_attention_has_a_state_and_no_cache() -> None:
    found = footprint(HYBRID, 0, 4, "bfloat16", "fp8_inc")
    assert (found.attention_layers, found.linear_layers, found.layer_groups) == (16, 48, 3)
    assert found.block == 2 * 16 * 1 * 256 * 1 * 128
    one_layer = (2 * 16 * 128 + 48 * 128) // 4 * 3 * 2 + 12 * 128 * 128 * 4
    assert found.state == 48 * one_layer
    # The plugin makes max_num_seqs * groups + 2 slots of each of the 16 tensors.
    assert found.fixed_state(256) == (256 * 3 + 2) * 16 * one_layer
    by_interval = {key: value for key, value in HYBRID["text_config"].items() if key != "layer_types"}
    assert footprint({**by_interval, "full_attention_interval": 4}, 0, 4, "bfloat16", "fp8_inc") == found


def test_latent_attention_keeps_one_tensor_on_every_card() -> None:
    config = {**LLAMA_8B, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    for cards in (1, 8):
        assert footprint(config, 0, cards, "bfloat16", "auto").block == 32 * 576 * 2 * 128


@pytest.mark.parametrize(
    "change, cards, said",
    [
        ({}, 3, "3 cards cannot share 32 attention heads and 8 key-value heads evenly: use 1 or 2 or 4 or 8 cards"),
        ({"num_hidden_layers": "32"}, 1, "num_hidden_layers '32'"),
        ({"hidden_size": None}, 1, "hidden_size None"),
        ({"layer_types": ["mamba"] * 32}, 1, "layers of type mamba"),
        ({"layer_types": 5}, 1, "layer_types 5, where a plan needs a list"),
        ({"layer_types": ["full_attention"]}, 1, "num_hidden_layers 32 and 1 layer_types"),
        ({"mamba_d_state": 16, "model_type": "granitemoehybrid"}, 1, "recurrent layers whose cache is not planned"),
    ],
)
def test_configurations_that_cannot_be_planned_are_refused(change: dict[str, Any], cards: int, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        footprint({**LLAMA_8B, **change}, WEIGHTS, cards, "bfloat16", "auto")


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(Refusal, match="dtype 'int4' is not known"):
        footprint(LLAMA_8B, WEIGHTS, 1, "int4", "auto")


def test_the_length_of_a_model() -> None:
    assert longest(LLAMA_8B) == 131072 and longest(HYBRID) == 262144
