"""The same model with fewer blocks, where all of its blocks are alike."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from gaudi3_scale.config import Config, ModelConfig

FEW = 3
"""Blocks of the smaller of the two models from which a larger one is predicted."""
WHOLE = 6
"""Blocks up to which a model is taken as it is."""


@dataclass(frozen=True)
class Known:
    """What is known of a model from its shapes."""

    blocks: int | None
    """Repeated blocks, if they are all alike and their number can be set; else None."""
    parameters: int
    trained_parameters: int
    flops: Any
    """`throughput.flops.ModelFlops`; None where they are not counted."""


def equal_blocks(config: Config) -> int | None:
    """How many blocks the job's model has, all alike and recomputed alike; None where they differ."""
    if config.memory.activation_checkpointing == "budget":
        return None
    return known(config.model).blocks


def with_blocks(config: Config, number: int) -> Config:
    """The job with a model of this many blocks."""
    model = config.model
    if model.name == "llama":
        fewer = model.model_copy(update={"layers": number})
    else:
        fewer = model.model_copy(update={"config": {**model.config, **_keys(model, number)}})
    return config.model_copy(update={"model": fewer})


def known(model: ModelConfig) -> Known:
    """Of the job's model; each is built once, of shapes only."""
    return _known(model.model_dump_json())


@functools.lru_cache(maxsize=16)
def _known(text: str) -> Known:
    from gaudi3_scale.models.blocks import repeated_blocks
    from gaudi3_scale.models.build import build
    from gaudi3_scale.throughput.flops import UncountableError, count

    config = ModelConfig.model_validate_json(text)
    model = build(config, device="meta")
    blocks = [block for _, block in repeated_blocks(model)]
    shapes = {
        tuple((name, tuple(p.shape), p.requires_grad) for name, p in block.named_parameters()) for block in blocks
    }
    layers = getattr(getattr(model, "config", None), "num_hidden_layers", None)
    kinds = set(getattr(getattr(model, "config", None), "layer_types", None) or [])
    alike = len(shapes) == 1 and len(kinds) <= 1 and layers == len(blocks)
    parameters = list(model.parameters())
    try:
        flops = count(model)
    except UncountableError:
        flops = None
    return Known(
        blocks=len(blocks) if alike else None,
        parameters=sum(p.numel() for p in parameters),
        trained_parameters=sum(p.numel() for p in parameters if p.requires_grad),
        flops=flops,
    )


def _keys(model: ModelConfig, number: int) -> dict[str, Any]:
    from gaudi3_scale.models.build import architecture

    found = architecture(model)
    name = getattr(found, "attribute_map", {}).get("num_hidden_layers", "num_hidden_layers")
    values: dict[str, Any] = {name: number}
    kinds = getattr(found, "layer_types", None)
    if kinds:
        values["layer_types"] = list(kinds)[:1] * number
    return values
