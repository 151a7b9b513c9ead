"""Published model shapes by name: sizes only, with random weights; nothing is downloaded.

| shape | from the config.json of | parameters |
|---|---|---|
| llama-3.1-8b | meta-llama/Llama-3.1-8B, released 2024-07-23 | 8,030,261,248 |
| llama-3.1-70b | meta-llama/Llama-3.1-70B, released 2024-07-23 | 70,553,706,496 |
| mixtral-8x7b | mistralai/Mixtral-8x7B-v0.1, released 2023-12-11 | 46,702,792,704 |
| bert-base | google-bert/bert-base-uncased (Devlin et al., 2018-10-11), with its masked-language head | 109,514,298 |
| bert-large | google-bert/bert-large-uncased, the same | 335,174,458 |

Read on 2026-11-21 from public copies of these files; a test counts the parameters. The tiny ones are ours: the same
architectures, of a size for tests, with room for bytes (and a mask).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "tie_word_embeddings": False,
}
_LLAMA_3_1: dict[str, Any] = {
    **_LLAMA,
    "vocab_size": 128256,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}
_MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
    "num_experts_per_tok": 2,
    "router_aux_loss_coef": 0.02,
    "tie_word_embeddings": False,
}
_BERT: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "max_position_embeddings": 512,
}


def _sizes(width: int, inner: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }


_TINY: dict[str, Any] = {"vocab_size": 256, "num_key_value_heads": 2, "max_position_embeddings": 512}
_MIXTRAL_8X7B: dict[str, Any] = {"vocab_size": 32000, "num_key_value_heads": 8, "num_local_experts": 8}

SHAPES: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": {**_LLAMA_3_1, **_sizes(4096, 14336, 32, 32)},
    "llama-3.1-70b": {**_LLAMA_3_1, **_sizes(8192, 28672, 80, 64)},
    "mixtral-8x7b": {**_MIXTRAL, **_MIXTRAL_8X7B, **_sizes(4096, 14336, 32, 32), "max_position_embeddings": 32768},
    "bert-base": {**_BERT, **_sizes(768, 3072, 12, 12), "vocab_size": 30522},
    "bert-large": {**_BERT, **_sizes(1024, 4096, 24, 16), "vocab_size": 30522},
    "llama-tiny": {**_LLAMA, **_TINY, **_sizes(64, 128, 2, 4)},
    "mixtral-tiny": {**_MIXTRAL, **_TINY, **_sizes(64, 96, 2, 4), "num_local_experts": 4},
    "bert-tiny": {**_BERT, **_sizes(64, 128, 2, 4), "vocab_size": 264, "pad_token_id": None},
}

LENGTHS = {"bert": 512, "llama": 2048, "mixtral": 2048}
"""Tokens of a sample for a published shape where none are given: what `gaudi3-benchmark` measures too."""


def own_length(shape: str, changes: Mapping[str, Any]) -> int | None:
    """Tokens of a sample for a published shape with changes to its configuration; None for the tiny ones.

    >>> own_length("llama-3.1-8b", {}), own_length("bert-base", {}), own_length("llama-tiny", {})
    (2048, 512, None)
    """
    if shape not in SHAPES or shape.endswith("-tiny"):
        return None
    found = {**SHAPES[shape], **changes}
    return min(LENGTHS[SHAPES[shape]["model_type"]], int(found["max_position_embeddings"]))
