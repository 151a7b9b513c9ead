"""Fully sharded data parallelism (FSDP2) over a module that knows nothing of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.models.blocks import repeated_blocks


def shard(module: nn.Module, mesh: Any, half: torch.dtype | None = None, reshard: bool = True) -> None:
    """Split every parameter evenly over a mesh, and gather those of one block at a time.

    Args:
        module: a LightningModule or any other; changed in place. Its submodules are what is called, not itself.
        mesh: `torch.distributed.device_mesh.DeviceMesh` of one dimension, or of (replicate, shard), where parameters
            are split over the second and copied over the first.
        half: dtype of the gathered parameters and activations; gradients are still reduced in float32. None = as is.
        reshard: free the gathered parameters of a block between forward and backward.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32) if half else MixedPrecisionPolicy()
    loose = [name for name, parameter in module.named_parameters(recurse=False) if parameter.requires_grad]
    if loose:
        raise ConfigError(
            f"habana_fsdp cannot shard {', '.join(loose)}, which {type(module).__name__} holds itself: move parameters "
            "into a submodule that is called, or shard the module in its configure_model."
        )
    for root in _called(module):
        for part in (*(block for _, block in repeated_blocks(root)), root):
            # Backward begins with what the root holds itself: to free that would be of no use (None).
            freed = (None if part is root else True) if reshard else False
            sharded = fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=freed)
            # HCCL cannot average, and the same sum on every device makes the same gradients.
            sharded.set_force_sum_reduction_for_comms(True)


def sharded_parts(module: nn.Module) -> list[Any]:
    """The modules that `fully_shard` was called with."""
    from torch.distributed.fsdp import FSDPModule

    return [part for part in module.modules() if isinstance(part, FSDPModule)]


def _called(module: nn.Module) -> list[nn.Module]:
    """The outermost submodules with parameters that have a forward of their own."""
    found: list[nn.Module] = []
    for child in module.children():
        if next(child.parameters(), None) is None:
            continue
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            found.extend(_called(child))
        else:
            found.append(child)
    return found
