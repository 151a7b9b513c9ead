"""The job's model as the configuration's `memory` wants it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.hpu.kernels import lacks_grouped_products
from gaudi3_scale.memory.attention import use_attention
from gaudi3_scale.memory.checkpointing import checkpoint_all
from gaudi3_scale.memory.recompute import GIB, plan_recompute
from gaudi3_scale.memory.rotary import use_fused_rotary
from gaudi3_scale.memory.tracker import Loss
from gaudi3_scale.models.objectives import batch_shape


def apply(model: nn.Module, loss: Loss, config: Config, device: Device) -> dict[str, str]:
    """Set attention, rotary embedding and recomputation before the model is moved, sharded or wrapped.

    Args:
        model: changed in place; its class and the names of its parameters stay.
        loss: called with the model and a batch as `models.objectives.losses` takes it.
        config: of the job; every process comes to the same plan from it.
        device: where it will train.

    Returns:
        What was done, by option; options left alone are not in it.
    """
    wanted, done = config.memory, {}
    attention = use_attention(model, wanted.attention, device.type)
    if not attention.startswith("as built") or wanted.attention != "auto":
        done["attention"] = attention
    if wanted.fused_rope:
        done["fused_rope"] = use_fused_rotary(model, device.type)
    if (experts := _experts(model, device.type)) is not None:
        done["experts"] = experts
    if (recomputed := apply_recomputation(model, loss, config, device)) is not None:
        done["activation_checkpointing"] = recomputed
    return done


def apply_recomputation(
    model: nn.Module, loss: Loss, config: Config, device: Device | None, gradient_buckets: bool | None = None
) -> str | None:
    """Set the level of each block; one sentence on it, or None where nothing is recomputed.

    Args:
        model: changed in place.
        loss: as for `apply`.
        config: of the job.
        device: where it will train, whose memory is the budget where none is given; None = it is not here.
        gradient_buckets: as for `predict_step`; None = as the process group that there is.
    """
    wanted = config.memory.activation_checkpointing
    if wanted == "none":
        return None
    if wanted == "budget":
        buckets = dist.is_initialized() and dist.get_world_size() > 1
        return _by_budget(model, loss, config, device, buckets if gradient_buckets is None else gradient_buckets)
    return f"{wanted} on {len(checkpoint_all(model, wanted))} blocks"


def _experts(model: nn.Module, device_type: str) -> str | None:
    """Have experts computed in a way that the device is known to have; one sentence if that is not the model's."""
    why, config = lacks_grouped_products(device_type), getattr(model, "config", None)
    if why is None or getattr(config, "_experts_implementation", None) != "grouped_mm":
        return None
    named: Any = model
    named.set_experts_implementation("eager")
    return f"one after the other, as {why}"


def _by_budget(model: nn.Module, loss: Loss, config: Config, device: Device | None, buckets: bool) -> str:
    train, wanted = config.train, config.memory
    if getattr(train, "strategy", "auto") == "habana_fsdp":
        raise ConfigError(
            "memory.activation_checkpointing is budget, which predicts a step of an unsharded model, and "
            "train.strategy is habana_fsdp: set the former to full or selective, or the latter to habana_ddp."
        )
    if wanted.budget_gib is not None:
        budget: int | None = int(min(wanted.budget_gib, 2**30) * GIB)
    else:
        budget = device.memory_limit() if device is not None else None
    if budget is None:
        where = f"device {device.type}" if device is not None else "the device"
        raise ConfigError(
            f"memory.activation_checkpointing is budget, and {where} has no memory of its own to take as the budget: "
            "set memory.budget_gib."
        )
    plan = plan_recompute(
        model,
        loss,
        lambda batch: [torch.zeros(batch_shape(config, batch), dtype=torch.int64, device="meta")],
        train.micro_batch_size,
        budget,
        margin=wanted.margin,
        selective=wanted.selective,
        precision=_precision(train.precision),
        accumulation=train.accumulation_steps,
        gradient_buckets=buckets,
    )
    plan.apply(model)
    return str(plan)


def _precision(name: str) -> Callable[[], AbstractContextManager[Any]]:
    """Forward context of the prediction, which runs on fake CPU tensors."""
    return partial(torch.autocast, "cpu", dtype=torch.bfloat16) if name == "bf16-mixed" else nullcontext
