"""Weights for a model that was built as shapes only, so that no process ever holds the whole of it.

    model, plan = build_deferred(config)         # model.deferred does so in a job
    fully_shard(...)                             # or not
    materialise(model, seed, torch.device("hpu", 0), plan)

Each process reads its part of a folder's weights (`weights.py`). What no folder has is drawn: every module draws from a
generator of its own, which follows from the seed and the module's name. So the weights are the same for any number of
processes and any sharding. (They are not those of `build` on a real device, which draws one module after the other from
one generator.)
"""

from __future__ import annotations

import copy
import hashlib
import math
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.internals import CHECKPOINT_WRAPPER, with_tensors
from gaudi3_scale.models.build import add_lora, build, frozen_dtype, has_weights
from gaudi3_scale.models.weights import WeightsPlan, plan_weights, read_weights

Shapes = dict[str, tuple[torch.Size, torch.dtype, bool]]
ADAPTERS = "base_model.model."
"""What peft puts before the names of the model that it wraps."""


@torch.no_grad()
def materialise(model: nn.Module, seed: int, device: torch.device, plan: WeightsPlan | None = None) -> None:
    """Allocate what this process holds of the model, and fill it: by the plan from a folder, or else drawn."""
    shapes = {name: _own(module) for name, module in model.named_modules()}
    model.to_empty(device=device)
    tie(model)
    loaded = _load(model, plan) if plan is not None else set()
    for name, module in model.named_modules():
        left = [key for key in shapes[name] if _joined(name, key) not in loaded]
        if left:
            _draw(model, module, shapes[name], left, f"{seed}/{name}")
    tie(model)


def _load(model: nn.Module, plan: WeightsPlan) -> set[str]:
    """Read this process's part of the folder; the live names of what was read."""
    live: dict[str, torch.Tensor] = dict(model.named_parameters(remove_duplicate=False))
    live.update(model.named_buffers(remove_duplicate=False))
    names = {name: clean(name) for name in live if clean(name) in plan.sources}
    read_weights({named: live[name].detach() for name, named in names.items()}, plan)
    return set(names)


def build_deferred(config: Config, weights: bool = True) -> tuple[nn.Module, WeightsPlan | None]:
    """A job's model as shapes only, and where its weights come from; ConfigError if they cannot be read in parts.

    Without `weights` those of a folder are not read, unless they stay as they are beside adapters.
    """
    if config.train.strategy != "habana_fsdp":
        raise ConfigError(
            f"model.deferred is set, and train.strategy is {config.train.strategy}, under which every process has the "
            "whole model: set train.strategy to habana_fsdp, or leave model.deferred out."
        )
    settings = config.model
    base: Any = build(settings, device="meta", adapters=False, frozen=frozen_dtype(config))
    wanted = has_weights(settings) and (weights or settings.lora.rank > 0)
    plan = plan_weights(base, settings) if wanted else None
    return add_lora(base, settings), plan


def clean(name: str) -> str:
    """The name that the model's own code gives a parameter, without those of adapters and recomputed blocks."""
    return name.replace(f"{CHECKPOINT_WRAPPER.key}.", "").removeprefix(ADAPTERS).replace(".base_layer.", ".")


def tie(model: Any) -> None:
    """Make tied weights one again, as each module was given tensors of its own."""
    if getattr(model.config, "tie_word_embeddings", False):
        model.tie_weights()


def _draw(model: Any, module: nn.Module, own: Shapes, left: list[str], key: str) -> None:
    """Initial values of what is left of a module's own tensors; the whole of one module at a time is on the CPU."""
    whole = copy.copy(module)
    kinds = own.items()
    parameters = {k: nn.Parameter(torch.empty(shape, dtype=kind)) for k, (shape, kind, learnt) in kinds if learnt}
    buffers = {k: torch.zeros(shape, dtype=kind) for k, (shape, kind, learnt) in kinds if not learnt}
    with_tensors(whole, parameters, buffers)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1)
        if ".lora_" in key:
            _draw_adapter(key, parameters)
        else:
            model._init_weights(whole)
    for name in left:
        _fill(getattr(module, name), getattr(whole, name).detach())


def _draw_adapter(key: str, parameters: dict[str, nn.Parameter]) -> None:
    """As peft: one factor is drawn, the other zero, so that an adapter does nothing at first."""
    for parameter in parameters.values():
        if ".lora_A" in key:
            nn.init.kaiming_uniform_(parameter, a=math.sqrt(5))
        elif ".lora_embedding_B" in key:
            nn.init.normal_(parameter)
        else:
            nn.init.zeros_(parameter)


def _joined(module: str, key: str) -> str:
    return f"{module}.{key}" if module else key


def _own(module: nn.Module) -> Shapes:
    """Whole shape and type of the parameters (True) and buffers (False) that are the module's own."""
    own: Shapes = {}
    for key, parameter in module.named_parameters(recurse=False):
        own[key] = parameter.shape, parameter.dtype, True
    for key, buffer in module.named_buffers(recurse=False):
        own[key] = buffer.shape, buffer.dtype, False
    return own


def _fill(target: torch.Tensor, value: torch.Tensor) -> None:
    """Copy a whole tensor into one that may be this process's part of it; every process has the same whole."""
    if isinstance(target, DTensor):
        part = distribute_tensor(value, target.device_mesh, target.placements, src_data_rank=None)
        target.to_local().copy_(part.to_local())
    else:
        target.copy_(value)
