"""What lets a trial of a batch fail in one process without the others waiting for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightning.pytorch as pl
import torch
import torch.distributed as dist
from torch import Tensor

from gaudi3_scale.batch.memory_agreement import MemoryAgreement
from gaudi3_scale.integration.sharding import sharded_parts


class RehearsalCallback(pl.Callback):
    """Has a trainer's processes agree before each collective of a step."""

    def __init__(self, agreement: MemoryAgreement) -> None:
        self._agreement = agreement

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Everything is on its device."""
        from torch.nn.parallel import DistributedDataParallel

        ddp = trainer.strategy.model
        if isinstance(ddp, DistributedDataParallel):
            from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook

            ddp.register_comm_hook(None, noop_hook)
        for part in sharded_parts(pl_module):
            part.set_custom_all_gather(_all_gather(self._agreement))
            part.set_custom_reduce_scatter(_reduce_scatter(self._agreement))
            part.set_requires_all_reduce(False, recurse=False)  # between copies, of what exists by then

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """DDP may arrange its buckets here, which is a collective."""
        self._agreement.ask()

    def on_before_optimizer_step(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """The gradients' norm is next, for which shards are summed."""
        self._agreement.ask()


class _Empty:
    """Memory for a collective."""

    def __init__(self, agreement: MemoryAgreement) -> None:
        self._agreement = agreement

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class _AllGather(_Empty):
    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False) -> Any:
        self._agreement.ask()
        return dist.all_gather_into_tensor(output_tensor, input_tensor, group=group, async_op=async_op)


class _ReduceScatter(_Empty):
    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        self._agreement.ask()
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=async_op)


def _all_gather(agreement: MemoryAgreement) -> Any:
    return _AllGather(agreement)


def _reduce_scatter(agreement: MemoryAgreement) -> Any:
    return _ReduceScatter(agreement)
