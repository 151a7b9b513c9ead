"""Importing this registers the process-group backend `hccl` for hpu: gloo, without ReduceOp.AVG."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch.distributed as dist

import habana_frameworks.torch  # noqa: F401
from gaudi3_hpu_simulator.load import extension

__all__ = ["initialize_distributed_hpu"]

# (environment variable of OpenMPI, of torchrun)
_WORLD = ("OMPI_COMM_WORLD_SIZE", "WORLD_SIZE")
_RANK = ("OMPI_COMM_WORLD_RANK", "RANK")
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK")


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    gloo = dist.ProcessGroupGloo(store, rank, size, timeout)
    gloo._set_sequence_number_for_group()
    return extension().make_hccl(gloo, store, rank, size)


def _register() -> None:
    if "hccl" not in dist.Backend.backend_list:
        dist.Backend.register_backend("hccl", _create, devices=["hpu"])


def initialize_distributed_hpu(
    world_size: int | None = None, rank: int | None = None, local_rank: int | None = None
) -> tuple[int, int, int]:
    """Take the world's size, rank and local rank from the arguments or the launcher's environment, and tell torch.

    Returns `(world_size, rank, local_rank)`. HLS_MODULE_ID is set from the local rank, and MASTER_ADDR and MASTER_PORT
    to localhost and 12345 where a world of several is given none.
    """
    size = _known(world_size, _WORLD, 1)
    number = _known(rank, _RANK, -1)
    local = _known(local_rank, _LOCAL_RANK, -1)
    if size > 1:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "12345")
        os.environ.update(WORLD_SIZE=str(size), RANK=str(number), LOCAL_RANK=str(local))
        os.environ.setdefault("HLS_MODULE_ID", str(local))
    return size, number, local


def _known(given: int | None, names: tuple[str, ...], default: int) -> int:
    if given is not None:
        return given
    return next((int(os.environ[name]) for name in names if name in os.environ), default)


_register()
