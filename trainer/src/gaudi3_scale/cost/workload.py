"""Floating-point operations of a whole training, from the model's parameters and the tokens it learns from.

Six operations per parameter and token: a multiplication and an addition forward, and twice as many backward, where both
the gradient of the input and that of the parameter are computed. Attention's products with the sequence are left out,
so where the MFU counts them, as `throughput/flops.py` does, the training takes a few percent more time.
"""

from __future__ import annotations

import re

from gaudi3_scale.errors import ConfigError

SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
MODELS = {
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
}
"""Parameters of models by name: the sizes in their config.json, see `config/shapes.py`."""


def count(text: str | float, what: str) -> float:
    """A number of parameters or tokens such as `70B`, `1.5T` or 1e12.

    >>> count("1.5T", "dataset_tokens")
    1500000000000.0

    Raises ConfigError for what is none.
    """
    if isinstance(text, int | float):
        value = float(text)
    else:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?) *([KMBT]?)", text.strip(), re.IGNORECASE)
        value = float(match[1]) * SUFFIXES[match[2].upper()] if match else 0.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"{what} is {text!r}: give a number above 0, with K, M, B or T for its thousands, as 70B.")
    return value


def parameters(model: str | float) -> float:
    """Parameters of a model, by size (`70B`) or by name (`llama-3.1-70b`); of experts give those visited."""
    if isinstance(model, str) and model.lower() in MODELS:
        return float(MODELS[model.lower()])
    try:
        return count(model, "model_size")
    except ConfigError:
        raise ConfigError(
            f"model_size is {model!r}: give a number of parameters, as 70B, or one of {', '.join(MODELS)}."
        ) from None


def training_flops(model_parameters: float, tokens: float) -> float:
    """Operations of the training: 6 x parameters x tokens.

    >>> training_flops(70e9, 1e12)
    4.2e+23
    """
    return 6 * model_parameters * tokens
