"""Weights that are not trained: checkpoints may leave them out, and know them again by samples.

The identity is the SHA-256 over the name, the shape and 64 evenly spaced values of every frozen parameter, rounded to
bfloat16. So it does not depend on the type that the weights are kept in, nor on how they are split over processes. It
costs a gather of one parameter at a time where they are split. Weights that were trained further differ in nearly all
values; a change of single values elsewhere is not noticed.
"""

from __future__ import annotations

import hashlib

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from gaudi3_scale.internals import CHECKPOINT_WRAPPER

SAMPLES = 64
WRAPPERS = (f"{CHECKPOINT_WRAPPER.key}.", "_orig_mod.")
"""What recomputation and torch.compile add to names."""


def plain_name(name: str) -> str:
    """A parameter's name as checkpoints have it."""
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def frozen_names(model: nn.Module) -> set[str]:
    """Names of the parameters without gradients; those of a tied one are all there."""
    named = model.named_parameters(remove_duplicate=False)
    return {plain_name(name) for name, parameter in named if not parameter.requires_grad}


@torch.no_grad()
def frozen_identity(model: nn.Module) -> str:
    """What tells the frozen weights of a model from others, as a hexadecimal digest. Collective if they are sharded."""
    digest = hashlib.sha256()
    samples: list[torch.Tensor] = []
    named = {plain_name(name): p for name, p in model.named_parameters() if not p.requires_grad}
    for name in sorted(named):
        parameter = named[name]
        whole = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter.detach()
        flat = whole.flatten()
        count = min(SAMPLES, flat.numel())
        places = torch.tensor([flat.numel() * i // count for i in range(count)], device=flat.device)
        samples.append(flat[places].to(torch.bfloat16))
        digest.update(f"{name} {list(whole.shape)}\n".encode())
    if samples:
        digest.update(torch.cat(samples).cpu().view(torch.int16).numpy().tobytes())
    return digest.hexdigest()
