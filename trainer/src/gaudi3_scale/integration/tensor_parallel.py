"""Matrices split over processes, by the plan that a transformers model has."""

from __future__ import annotations

from typing import Any

from torch import nn

from gaudi3_scale.errors import ConfigError


def split_matrices(module: nn.Module, mesh: Any) -> None:
    """Split the matrices of every submodule that has a `tp_plan`, as transformers' models do; changed in place.

    Args:
        module: a LightningModule or any other, before `fully_shard`.
        mesh: `torch.distributed.device_mesh.DeviceMesh` of one dimension.

    The plan maps names, in which * stands for a number, to `colwise`, `rowwise`, `colwise_gather_output`,
    `colwise_rep` or `embedding_rowwise` (transformers, "Distributed inference"). ConfigError where there is no plan or
    one with other words, or where a number of heads cannot be divided.
    """
    from torch.distributed.tensor.parallel import parallelize_module

    planned = [(name, child) for name, child in module.named_children() if getattr(child, "tp_plan", None)]
    if not planned:
        raise ConfigError(
            f"tensor_parallel_size is {mesh.size()}, and {type(module).__name__} neither has a configure_model that "
            "splits its matrices nor a model with a tp_plan: give it one of them, or set tensor_parallel_size to 1."
        )
    for name, child in planned:
        _check_heads(child, mesh.size())
        plan = {matrix: _style(f"{name}.{matrix}", style) for matrix, style in _untied(child).items()}
        parallelize_module(child, mesh, plan)


def _untied(model: Any) -> dict[str, str]:
    """The plan, without the embedding and the head where they are one matrix."""
    plan = dict(model.tp_plan)
    if getattr(model.config, "tie_word_embeddings", False):
        return {name: style for name, style in plan.items() if ".layers." in name or ".h." in name}
    return plan


def _check_heads(model: Any, size: int) -> None:
    for name in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(getattr(model, "config", None), name, None)
        if heads is not None and heads % size:
            raise ConfigError(
                f"tensor_parallel_size is {size}, and {type(model).__name__} has {name} {heads}, which cannot be "
                "divided by it: give a divisor."
            )


def _style(name: str, style: str) -> Any:
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    if style == "colwise":
        return ColwiseParallel()
    if style == "rowwise":
        return RowwiseParallel()
    if style in ("colwise_gather_output", "colwise_rep"):
        return ColwiseParallel(output_layouts=Replicate())
    if style == "embedding_rowwise":
        return RowwiseParallel(input_layouts=Replicate())
    raise ConfigError(
        f"The tp_plan has {style!r} for {name}, which habana_fsdp does not know: split the module's matrices in its "
        "configure_model, or set tensor_parallel_size to 1."
    )
