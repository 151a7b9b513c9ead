"""Random weights for a model that was built as shapes only, so that no process ever holds the whole of it.

    model = build(config, device="meta")         # model.deferred does so in a job
    fully_shard(...)                             # or not
    materialise(model, seed, torch.device("hpu", 0))

Every module draws from a generator of its own, which follows from the seed and the module's name: the weights are the
same for any number of processes and any sharding. (They are not those of `build` on a real device, which draws one
module after the other from one generator.)
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.internals import with_tensors
from gaudi3_scale.models.build import build, has_weights


def build_deferred(config: Config) -> nn.Module:
    """A job's model as shapes only; ConfigError where it could not be given weights."""
    if config.train.strategy != "habana_fsdp":
        raise ConfigError(
            f"model.deferred is set, and train.strategy is {config.train.strategy}, under which every process has the "
            "whole model: set train.strategy to habana_fsdp, or leave model.deferred out."
        )
    if config.model.lora.rank or has_weights(config.model):
        raise ConfigError(
            "model.deferred draws random weights, and this job begins from a folder's or trains adapters: leave it "
            "out, or set model.weights to random and model.lora.rank to 0."
        )
    return build(config.model, device="meta")


@torch.no_grad()
def materialise(model: nn.Module, seed: int, device: torch.device) -> None:
    """Allocate what this process holds of the model, and fill it; the whole of one module at a time is on the CPU."""
    pretrained: Any = model
    shapes = {name: _own(module) for name, module in model.named_modules()}
    model.to_empty(device=device)
    for name, module in model.named_modules():
        if not shapes[name]:
            continue
        whole = copy.copy(module)
        own = shapes[name].items()
        parameters = {k: nn.Parameter(torch.empty(shape, dtype=kind)) for k, (shape, kind, learnt) in own if learnt}
        buffers = {k: torch.zeros(shape, dtype=kind) for k, (shape, kind, learnt) in own if not learnt}
        with_tensors(whole, parameters, buffers)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big") >> 1)
            pretrained._init_weights(whole)
        for key in shapes[name]:
            _fill(getattr(module, key), getattr(whole, key).detach())
    if getattr(pretrained.config, "tie_word_embeddings", False):
        pretrained.tie_weights()


def _own(module: nn.Module) -> dict[str, tuple[torch.Size, torch.dtype, bool]]:
    """Whole shape and type of the parameters (True) and buffers (False) that are the module's own."""
    own: dict[str, tuple[torch.Size, torch.dtype, bool]] = {}
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
