"""Models from the configuration: sizes, published shapes, and folders in the form of transformers, always local."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from gaudi3_scale.config import Config, ModelConfig
from gaudi3_scale.config.changes import checked
from gaudi3_scale.config.registered import PREFIX, is_registered
from gaudi3_scale.config.shapes import SHAPES
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.models.folder import refuse_adapters, weight_paths


def architecture(config: ModelConfig) -> Any:
    """The transformers configuration of the model; ConfigError if it cannot be, or takes no such long samples."""
    from transformers import AutoConfig

    if config.name == "llama":
        return AutoConfig.for_model("llama", **_llama_sizes(config))
    if config.name in SHAPES:
        values = {"bos_token_id": None, "eos_token_id": None, **SHAPES[config.name]}
        kind = values.pop("model_type")
        found = AutoConfig.for_model(kind, **values)
    elif is_registered(config.name):
        raise not_here(config.name)
    else:
        try:
            found = AutoConfig.from_pretrained(config.name, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # whatever a config.json makes the library raise
            refuse_adapters(Path(config.name))
            raise ConfigError(
                f"model.name is {config.name!r}, a folder without a config.json that the installed transformers knows "
                f"({_gist(error)}): give a folder that save_pretrained wrote."
            ) from None
    _override(found, config)
    positions = getattr(found, "max_position_embeddings", None)
    if positions is not None and config.sequence_length > positions:
        raise ConfigError(
            f"model.sequence_length is {config.sequence_length}, and {config.name!r} has {positions} positions: choose "
            f"at most {positions}."
        )
    return found


def not_here(name: str) -> ConfigError:
    """The sentence about a registered model where only a folder is of use."""
    return ConfigError(
        f"model.name is {name!r}, which only `gaudi3-train fit` fetches: fetch it with `gaudi3-train registry fetch "
        f"{name.removeprefix(PREFIX)} FOLDER`, and give the folder in its place."
    )


def is_masked(found: Any) -> bool:
    """Is it a masked language model, as BERT, and not a causal one? ConfigError if it is neither."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    name = (getattr(found, "architectures", None) or [""])[0]
    if name.endswith(("ForMaskedLM", "ForPreTraining")):
        return True
    if name.endswith(("ForCausalLM", "LMHeadModel")) or (not name and found.model_type in _names(causal=True)):
        return False
    known = MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys() | MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys()
    raise ConfigError(
        f"The model is a {name or found.model_type}, which is neither a causal nor a masked language model: give one "
        + ("of these." if found.model_type in known else "of an architecture that has such a head.")
    )


def build(
    config: ModelConfig,
    device: str | None = None,
    weights: bool = True,
    adapters: bool = True,
    frozen: torch.dtype = torch.float32,
) -> nn.Module:
    """The model in float32, with LoRA's adapters if they are wanted.

    Random weights come from torch's global generator, so that every rank that seeded it alike has the same. `device`
    "meta" gives shapes without storage. Without `weights` a folder's are not read: they are about to be overwritten.
    Those that adapters leave as they are are still read, with the type `frozen`. Without `adapters` the
    model is the one that they would be added to.
    """
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    found = architecture(config)
    auto: Any = AutoModelForMaskedLM if is_masked(found) else AutoModelForCausalLM
    dtype = frozen if config.lora.rank else torch.float32
    if device is not None:
        with torch.device(device):
            model = _made(auto, config, found, dtype)
    elif (weights or config.lora.rank) and has_weights(config):
        model = _with_weights(auto, config, found, dtype)
    else:
        model = _made(auto, config, found, torch.float32)
        for parameter in model.parameters():  # drawn in float32: the same numbers for any type
            parameter.data = parameter.data.to(dtype)
    return add_lora(model, config) if adapters else cast("nn.Module", model)


def add_lora(model: nn.Module, config: ModelConfig) -> nn.Module:
    """The model with adapters, if the configuration has any."""
    if not config.lora.rank:
        return model
    from gaudi3_scale.models.lora import add_adapters

    return cast("nn.Module", add_adapters(model, config))


def frozen_dtype(config: Config) -> torch.dtype:
    """Type of the weights that adapters leave as they are; a precision that no device has resolved is that of a CPU."""
    wanted = config.model.frozen_dtype
    if wanted == "auto":
        wanted = "bfloat16" if config.train.precision == "bf16-mixed" else "float32"
    return torch.bfloat16 if wanted == "bfloat16" else torch.float32


def has_frozen_folder(config: ModelConfig) -> bool:
    """Are there weights that stay as a folder has them? Checkpoints leave these out."""
    return config.lora.rank > 0 and has_weights(config)


def has_weights(config: ModelConfig) -> bool:
    """Does training begin from weights on disk? Only safetensors are read: a pickle may run code.

    ConfigError where the model is a folder whose weights are not there or not whole, unless model.weights is random.
    """
    if not is_folder(config) or config.weights == "random":
        return False
    weight_paths(Path(config.name))
    return True


def is_folder(config: ModelConfig) -> bool:
    """Is the model a folder, and not a shape that is known by its name?"""
    return config.name != "llama" and config.name not in SHAPES


def weights_of(config: ModelConfig) -> str:
    """Where a training's first weights come from: folder, or random."""
    return "folder" if has_weights(config) else "random"


def _made(auto: Any, config: ModelConfig, found: Any, dtype: torch.dtype) -> Any:
    """A model with random weights; ConfigError where the configuration gives none on any device."""
    try:
        return auto.from_config(found, dtype=dtype)
    except Exception:  # whatever wrong sizes make the library raise, or a lack of memory, which meta has not
        try:
            with torch.device("meta"):
                auto.from_config(found, dtype=dtype)
        except Exception as error:
            remedy = "take back what model.config changes" if config.config else "mend its config.json"
            raise ConfigError(
                f"No model can be made of {config.name!r} as it is configured ({type(error).__name__}: "
                f"{_gist(error)}): {remedy}."
            ) from None
        raise


def _with_weights(auto: Any, config: ModelConfig, found: Any, dtype: torch.dtype) -> Any:
    quiet_bars()
    try:
        model, report = auto.from_pretrained(
            config.name,
            config=found,
            local_files_only=True,
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
        )
    except (RuntimeError, OSError, ValueError) as error:
        raise ConfigError(
            f"The weights in {config.name!r} cannot be loaded ({_gist(error)}): mend the folder, take back what "
            "model.config changes, or set model.weights to random."
        ) from None
    missing = sorted(report["missing_keys"]) or sorted(str(key) for key in report.get("mismatched_keys", ()))
    if missing:
        raise ConfigError(
            f"The weights in {config.name!r} lack {missing[0]!r} and {len(missing) - 1} more in the configured shape: "
            "mend the folder, take back what model.config changes, or set model.weights to random."
        )
    return model


def quiet_bars() -> None:
    """Every rank would draw its own."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def _llama_sizes(config: ModelConfig) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "max_position_embeddings": config.sequence_length,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _override(found: Any, config: ModelConfig) -> None:
    known = [name for name in found.to_dict() if not name.startswith("_")]
    for name, value in config.config.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}."
            raise ConfigError(f"model.config has {name!r}, which the configuration of {config.name!r} does not: {hint}")
        value = checked(name, value, getattr(found, name), config.name)
        try:
            setattr(found, name, value)
        except Exception as error:  # newer versions of transformers check what is set
            raise ConfigError(
                f"model.config sets {name!r} to {json.dumps(value, default=str)}, which {config.name!r} does not take "
                f"({type(error).__name__}): give a value of its kind."
            ) from None


def _names(causal: bool) -> set[str]:
    from transformers.models.auto import modeling_auto as auto

    causal_names, masked_names = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return set(causal_names) - set(masked_names) if causal else set(masked_names)


def _gist(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")[:200] if str(error).strip() else type(error).__name__
