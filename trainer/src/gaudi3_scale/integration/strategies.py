"""Lightning's strategies, with nothing left for it to guess."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy
from lightning.pytorch.utilities.model_helpers import is_overridden

from gaudi3_scale.integration.sharding import shard


class HabanaDDPStrategy(DDPStrategy):
    """Data parallelism with a copy of the model in every process."""

    strategy_name = "habana_ddp"

    def determine_ddp_device_ids(self) -> list[int] | None:
        """Only CUDA wants to be told; on others Lightning would open a CUDA stream."""
        return [self.root_device.index] if self.root_device.type == "cuda" else None


class HabanaFSDPStrategy(ModelParallelStrategy):
    """Data parallelism with parameters, gradients and optimizer state split over all processes (FSDP2)."""

    strategy_name = "habana_fsdp"

    def setup_environment(self) -> None:
        """All processes share the data; none splits a matrix."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        self._tensor_parallel_size = 1
        super().setup_environment()

    def setup(self, trainer: pl.Trainer) -> None:
        """Shard what does not shard itself in `configure_model`, then as Lightning does."""
        module = self.lightning_module
        assert module is not None
        if not is_overridden("configure_model", module):
            half = torch.bfloat16 if str(self.precision_plugin.precision).startswith("bf16") else None
            shard(module, self.device_mesh["data_parallel"], half)
            module.configure_model = _done
        super().setup(trainer)


def _done(*arguments: Any) -> None:
    """In place of a module's configure_model: it is sharded already."""
