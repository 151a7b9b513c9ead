"""Activation checkpointing of a model's repeated blocks: drop what a block computed, compute it again in backward.

The block keeps its class and its parameters their names (unlike under a wrapper module), so that sharding, state
dictionaries and checkpoints see the same model as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.internals import GROUPED_PRODUCT
from gaudi3_scale.models.activation_checkpoint import checkpoint
from gaudi3_scale.models.blocks import repeated_blocks

Level = Literal["none", "selective", "full"]
LEVELS: tuple[Level, ...] = ("none", "selective", "full")

MATMULS = ("mm", "addmm", "bmm", "baddbmm", "convolution", GROUPED_PRODUCT.key, "grouped_mm_fallback")
"""Operations whose results `selective` keeps: a block's FLOPs are in them and in attention."""
ATTENTION_KERNELS = ("_scaled_dot_product", "sdpa")
"""Beginnings of the names of torch's and Habana's fused attention operations, kept too."""


def checkpoint_blocks(model: nn.Module, levels: dict[str, Level]) -> None:
    """Set the level of each named block; blocks that are not named keep theirs.

    Gradients are equal to those without checkpointing: random state and autocast are restored for the recomputation.
    `selective` pays a Python dispatch per operation of the block, in forward and in recomputation.
    """
    blocks = dict(repeated_blocks(model))
    for name, level in levels.items():
        if name not in blocks:
            raise ConfigError(
                f"{name!r} is no repeated block of this {type(model).__name__}: give one of {_some(blocks)}."
            )
        if level not in LEVELS:
            raise ConfigError(f"The checkpointing of block {name!r} is {level!r}: give none, selective or full.")
        _set(blocks[name], level)


def checkpoint_all(model: nn.Module, level: Level) -> list[str]:
    """Set every repeated block's level; their names. An error where nothing repeats."""
    names = [name for name, _ in repeated_blocks(model)]
    if not names:
        raise ConfigError(
            f"{type(model).__name__} has no list of at least two blocks of one class, so there is nothing to "
            "checkpoint: set activation_checkpointing to none."
        )
    checkpoint_blocks(model, dict.fromkeys(names, level))
    return names


def levels_of(model: nn.Module) -> dict[str, Level]:
    """The level of each repeated block."""
    return {name: getattr(block.forward, "gaudi_level", "none") for name, block in repeated_blocks(model)}


class _Checkpointed:
    """A block's forward that keeps only its inputs (and, if selective, the products). Picklable and copyable."""

    def __init__(self, forward: Callable[..., Any], level: Level) -> None:
        self.forward = forward
        self.gaudi_level = level
        functools.update_wrapper(self, forward, assigned=("__doc__", "__name__"), updated=())
        del self.__wrapped__  # type: ignore[attr-defined]  # a second reference, which a copy would not follow

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self.forward(*args, **kwargs)
        if self.gaudi_level == "selective":
            kwargs["context_fn"] = functools.partial(create_selective_checkpoint_contexts, _policy)
        return checkpoint(self.forward, *args, use_reentrant=False, **kwargs)


def _set(block: nn.Module, level: Level) -> None:
    current = block.__dict__.get("forward")
    if isinstance(current, _Checkpointed):
        block.forward = current.forward
        if getattr(current.forward, "__func__", None) is type(block).forward:
            del block.forward
    if level != "none":
        block.forward = _Checkpointed(block.forward, level)


def _policy(context: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    name = operation.name().split("::")[-1].split(".")[0]
    keep = name in MATMULS or name.startswith(ATTENTION_KERNELS)
    return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return (
        ", ".join(names[:3]) + (f", ... {names[-1]}" if len(names) > 3 else "") if names else "none: it has no blocks"
    )
