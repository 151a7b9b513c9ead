"""What `model.config` may change in a model's configuration, as far as that shows without making the model."""

from __future__ import annotations

import json
import math
from typing import Any

from gaudi3_scale.errors import ConfigError

FIXED = {
    "model_type": "it is another model then: give one by model.name",
    "dtype": "weights are float32, and train.precision says in what they are multiplied",
    "return_dict": "the training reads what the model returns by name",
    "is_encoder_decoder": "models with an encoder and a decoder are not trained",
}
"""What no value makes right."""
SIZES = {
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "head_dim"),
    *("num_key_value_heads", "max_position_embeddings", "num_local_experts", "num_experts_per_tok", "type_vocab_size"),
    "sliding_window",
}
"""Whole numbers of at least 1."""


def checked(name: str, value: Any, present: Any, model: str) -> Any:
    """A new value of a key whose value is `present` in the configuration of a model; a whole number for a fraction as
    one.

    Raises:
        ConfigError: It is of another kind, or beyond what any model takes.

    >>> checked("rms_norm_eps", 0, 1e-5, "llama-tiny")
    0.0
    """
    if name in FIXED:
        raise ConfigError(f"model.config sets {name!r} of {model!r}: {FIXED[name]}; leave it out.")
    given = f"model.config sets {name!r} to {_text(value)}"
    if present is not None and not _is_like(value, present):
        raise ConfigError(
            f"{given}, which is no {type(present).__name__} as the {_text(present)} of {model!r}: give a value of "
            "its kind."
        )
    if isinstance(value, list) and {type(each) for each in value} - {type(each) for each in present or value}:
        raise ConfigError(f"{given}, and {model!r} has {_text(present)}: give a list of such values.")
    if _is_number(value) and (name in SIZES or _is_number(present)):
        least = 1 if name in SIZES else 0 if present >= 0 and not name.endswith("_id") else -math.inf
        most = 1 if "dropout" in name else math.inf
        if not (math.isfinite(value) and least <= value <= most):
            raise ConfigError(
                f"{given}: give a number {f'from {least} to 1' if most == 1 else f'of at least {least}'}."
            )
    return float(value) if isinstance(present, float) else value


def _is_like(value: Any, present: Any) -> bool:
    if isinstance(present, float):
        return _is_number(value)
    return isinstance(value, type(present)) and isinstance(value, bool) == isinstance(present, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    """As it is written, also of what YAML has and JSON has not."""
    return json.dumps(value, default=str)
