"""Importing this registers the process-group backend `hccl` for hpu: gloo, without ReduceOp.AVG.

It also chooses the card of a launched process, as Habana's package does: HLS_MODULE_ID is set from the local rank.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import wraps
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from gaudi3_hpu_simulator.extension import extension
from habana_frameworks.torch.hpu import HABANA_VISIBLE_MODULES_VAR, HLS_MODULE_ID_VAR

__all__ = ["initialize_distributed_hpu"]

# What torchrun sets, and OpenMPI's name of it.
_LAUNCHER = {
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "RANK": "OMPI_COMM_WORLD_RANK",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
}


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    gloo = dist.ProcessGroupGloo(store, rank, size, timeout)
    gloo._set_sequence_number_for_group()
    return extension().make_hccl(gloo, store, rank, size)


def _register() -> None:
    if "hccl" not in dist.Backend.backend_list:
        dist.Backend.register_backend("hccl", _create, devices=["hpu"])


def _ignore_devices_of_barriers() -> None:
    """Let a barrier name any card, as Habana's process group ignores a barrier's options.

    torch makes a tensor on the card that `device_ids` names, by its index, and accelerate gives the rank.
    """
    original = distributed_c10d.barrier

    @wraps(original)
    def barrier(*arguments: Any, **options: Any) -> Any:
        group = arguments[0] if arguments else options.get("group")
        if dist.is_initialized() and "hccl" in distributed_c10d.get_backend_config(group):
            arguments, options = arguments[:2], {**options, "device_ids": None}
        return original(*arguments, **options)

    distributed_c10d.barrier = dist.barrier = barrier


def initialize_distributed_hpu(
    world_size: int | None = None, rank: int | None = None, local_rank: int | None = None
) -> tuple[int, int, int]:
    """Take the world's size, rank and local rank from the arguments, if all are given, or from the launcher's
    environment; returns them, -1 for an unknown rank.

    In a world of several, HLS_MODULE_ID is set unless it is there: to the module in the local rank's place of
    HABANA_VISIBLE_MODULES, or to the local rank. MASTER_ADDR and MASTER_PORT become localhost and 12345 where torchrun
    set nothing, and ID becomes the rank.
    """
    if world_size is not None and rank is not None and local_rank is not None:
        os.environ.update(WORLD_SIZE=str(world_size), RANK=str(rank), LOCAL_RANK=str(local_rank))
    elif not all(name in os.environ for name in _LAUNCHER):
        if all(name in os.environ for name in _LAUNCHER.values()):
            os.environ.update({name: os.environ[given] for name, given in _LAUNCHER.items()})
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "12345")
    size, number, local = (int(os.environ.get(*known)) for known in zip(_LAUNCHER, ("1", "-1", "-1"), strict=True))
    if local != -1 and size != 1 and HLS_MODULE_ID_VAR not in os.environ:
        os.environ[HLS_MODULE_ID_VAR] = _module(local)
    if number != -1:
        os.environ["ID"] = str(number)
    return size, number, local


def _module(local_rank: int) -> str:
    """The module id of a local rank."""
    if HABANA_VISIBLE_MODULES_VAR not in os.environ:
        return str(local_rank)
    modules = os.environ[HABANA_VISIBLE_MODULES_VAR].split(",")
    if local_rank >= len(modules):
        raise AssertionError(
            f"{HABANA_VISIBLE_MODULES_VAR} lists {len(modules)} module(s), but the local rank is {local_rank}: "
            "list one for each process, or start fewer."
        )
    return modules[local_rank]


initialize_distributed_hpu()
_register()
_ignore_devices_of_barriers()
