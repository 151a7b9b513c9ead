"""Low-rank adaptation through peft: small matrices beside frozen weights (Hu et al., "LoRA", 2021)."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from gaudi3_scale.config import ModelConfig
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.extras import how_to_install

LAYERS = {"Linear", "Conv1D", "Embedding"}
"""Kinds of layers that peft adapts."""


def add_adapters(model: Any, config: ModelConfig) -> Any:
    """The model with adapters; only they have gradients. Their initial values come from torch's global generator."""
    peft = need_peft()
    lora = config.lora
    _check_targets(model, config)
    settings = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or "all-linear",
        base_model_name_or_path=config.name,
    )
    return peft.get_peft_model(model, settings)


def _check_targets(model: Any, config: ModelConfig) -> None:
    """ConfigError for a name that no layer has. peft looks at all names together, and drops such a one."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    layers = {name for name, layer in model.named_modules() if type(layer).__name__ in LAYERS}
    for target in config.lora.targets:
        if not any(name == target or name.endswith(f".{target}") for name in layers):
            known = {
                name.rsplit(".", 1)[-1]
                for name, layer in model.named_modules()
                if type(layer).__name__ in LAYERS - {"Embedding"} and layer is not head
            }
            near = difflib.get_close_matches(target, sorted(known), n=1)
            raise ConfigError(
                f"model.lora.targets has {target!r}, which no layer of {config.name!r} is called: "
                + (f"did you mean {near[0]!r}? " if near else "")
                + f"It has {', '.join(sorted(known))}; leave the list empty for all of them."
            )


def need_peft() -> Any:
    """The package, or the sentence that names the extra."""
    try:
        return importlib.import_module("peft")
    except ImportError:
        raise ConfigError(
            f"model.lora needs the package peft, which is not installed: {how_to_install('lora')}."
        ) from None
