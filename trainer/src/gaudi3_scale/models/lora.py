"""Low-rank adaptation through peft: small matrices beside frozen weights (Hu et al., "LoRA", 2021)."""

from __future__ import annotations

import importlib
from typing import Any

from gaudi3_scale.config import ModelConfig
from gaudi3_scale.errors import ConfigError


def add_adapters(model: Any, config: ModelConfig) -> Any:
    """The model with adapters; only they have gradients. Their initial values come from torch's global generator."""
    peft = need_peft()
    lora = config.lora
    settings = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or "all-linear",
        base_model_name_or_path=config.name,
    )
    try:
        adapted = peft.get_peft_model(model, settings)
    except ValueError:
        layers = sorted({name.rsplit(".", 1)[-1] for name, m in model.named_modules() if type(m).__name__ == "Linear"})
        raise ConfigError(
            f"model.lora.targets is {lora.targets}, of which {config.name!r} has none: it has {', '.join(layers)}."
        ) from None
    return adapted


def need_peft() -> Any:
    """The package, or the sentence that names the extra."""
    try:
        return importlib.import_module("peft")
    except ImportError:
        raise ConfigError(
            "model.lora needs the package peft, which is not installed: pip install 'gaudi3-scale[lora]'."
        ) from None
