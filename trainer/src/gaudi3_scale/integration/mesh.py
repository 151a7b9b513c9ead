"""The sizes of a sharded training's mesh: what is named is taken or refused, never replaced."""

from __future__ import annotations

from typing import Any

from gaudi3_scale.errors import ConfigError


def mesh_sizes(data: int | str, tensor: int | str, processes: int) -> tuple[int, int]:
    """Processes that have different data, and processes that share a matrix.

    Args:
        data: `data_parallel_size` as it was given; auto = all that `tensor` leaves.
        tensor: `tensor_parallel_size` as it was given; auto = all that `data` leaves, and 1 if that is auto too.
        processes: of the training.

    Raises ConfigError if their product is not the number of processes.
    """
    for name, value in (("data_parallel_size", data), ("tensor_parallel_size", tensor)):
        if value != "auto" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigError(f"{name} is {value!r}: give a number of processes from 1 on, or 'auto'.")
    along, across = data, tensor
    if across == "auto":
        across = 1 if along == "auto" else processes // int(along)
    if along == "auto":
        along = processes // int(across)
    along, across = int(along), int(across)
    if along * across != processes:
        raise ConfigError(
            f"habana_fsdp was given data_parallel_size {data} and tensor_parallel_size {tensor}, and there are "
            f"{processes} processes: give sizes whose product is {processes}, or leave one of them at 'auto'."
        )
    return along, across


def replicated_mesh(device_type: str, replicas: int, processes: int) -> Any:
    """A mesh of (replicate, shard); consecutive ranks, which share a node, are one copy's."""
    from torch.distributed.device_mesh import init_device_mesh

    shape = (replicas, processes // replicas)
    return init_device_mesh(device_type, shape, mesh_dim_names=("replicate", "shard"))
