"""Strategies with nothing left for Lightning to guess: device, process-group backend, precision, signals.

What is ours is in mixins, because Lightning exists twice: the classes of `lightning.pytorch` are not those of
`pytorch_lightning`, and `twins` puts the mixins over both.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, SingleDeviceStrategy

from gaudi3_scale.device import Device, check_all_reduce, take
from gaudi3_scale.distributed import fresh_store
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.integration.sharding import shard
from gaudi3_scale.internals import group_of, name_backend, share_data, without_signals
from gaudi3_scale.precision import PRECISIONS, GaudiMixedPrecision, lightnings, refusal
from gaudi3_scale.selfcheck import check_numbers_once

TIMEOUT = timedelta(minutes=30)
"""Of a group where none is given: gloo's, as torch documents it."""


class GaudiStrategy:
    """What all strategies here share; comes before Lightning's class."""

    strategy_name: str
    gaudi_device: Device | None = None
    """Of this process, once the strategy is set up."""

    @property
    def precision_plugin(self) -> Any:
        """Ours, or plain 32 bit; Lightning's mixed precision would autocast for CUDA on a device it does not know."""
        return super().precision_plugin  # type: ignore[misc]

    @precision_plugin.setter
    def precision_plugin(self, plugin: Any) -> None:
        if plugin is not None and not isinstance(plugin, GaudiMixedPrecision) and lightnings(plugin) != "Precision":
            known = lightnings(plugin) in ("MixedPrecision", "HalfPrecision", "DoublePrecision")  # of `precision=`
            name = plugin.precision if known else type(plugin).__name__
            if name not in PRECISIONS:
                raise ConfigError(refusal(name))
            # The options of GaudiMixedPrecision are for whoever names it: `precision=` asks for the dtype only.
            plugin = GaudiMixedPrecision(name, use_fused_rope=False, use_flash_attention_v2=False)
        super(GaudiStrategy, type(self)).precision_plugin.fset(self, plugin)  # type: ignore[misc]

    def setup(self, trainer: Any) -> None:
        """Know the device, leave signals alone, and see that it computes and that collectives really reduce."""
        without_signals(trainer)
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        self.gaudi_device = take(root.type, root.index or 0)
        check_numbers_once(self.gaudi_device)
        if dist.is_available() and dist.is_initialized():
            check_all_reduce(self.gaudi_device)
        super().setup(trainer)  # type: ignore[misc]

    def _step_boundary(self) -> None:
        if self.gaudi_device is not None:
            self.gaudi_device.step_boundary()

    def post_backward(self, *arguments: Any, **named: Any) -> Any:
        """Let a lazy device run what was collected."""
        result = super().post_backward(*arguments, **named)  # type: ignore[misc]
        self._step_boundary()
        return result

    def optimizer_step(self, *arguments: Any, **named: Any) -> Any:
        """Likewise."""
        result = super().optimizer_step(*arguments, **named)  # type: ignore[misc]
        self._step_boundary()
        return result

    def validation_step(self, *arguments: Any, **named: Any) -> Any:
        """Likewise."""
        result = super().validation_step(*arguments, **named)  # type: ignore[misc]
        self._step_boundary()
        return result

    def test_step(self, *arguments: Any, **named: Any) -> Any:
        """Likewise."""
        result = super().test_step(*arguments, **named)  # type: ignore[misc]
        self._step_boundary()
        return result

    def predict_step(self, *arguments: Any, **named: Any) -> Any:
        """Likewise."""
        result = super().predict_step(*arguments, **named)  # type: ignore[misc]
        self._step_boundary()
        return result


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


class _Distributed(GaudiStrategy):
    def setup_environment(self) -> None:
        """Name the backend of the device; torch's own default for `hpu` may be `fake`, which reduces nothing."""
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        device = take(root.type, root.index or 0)
        backend, timeout = group_of(self)
        backend, timeout = backend or device.backend, timeout or TIMEOUT
        name_backend(self, backend)
        if not dist.is_initialized():
            # Lightning would bind the group to the device, and a mesh then splits it, which hccl and gloo cannot.
            strategy: Any = self
            strategy.set_world_ranks()
            strategy.accelerator.setup_device(root)
            where = strategy.cluster_environment
            os.environ.update(MASTER_ADDR=where.main_address, MASTER_PORT=str(where.main_port))
            # Lightning by itself would meet in a store that has the addresses of processes that torchrun restarted.
            rank, size = where.global_rank(), where.world_size()
            store = fresh_store(rank, size, timeout)
            dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
            if backend == "nccl":  # it complains of a group that is there at the end of the process
                atexit.register(_leave)
            # A mesh would set the device by LOCAL_RANK in a process that has not used one yet.
            check_all_reduce(device)
        super().setup_environment()  # type: ignore[misc]


class HabanaDDP(_Distributed):
    """Data parallelism with a copy of the model in every process."""

    strategy_name: str = "habana_ddp"

    def determine_ddp_device_ids(self) -> list[int] | None:
        """Only CUDA wants to be told; on others Lightning would open a CUDA stream."""
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        return [root.index] if root.type == "cuda" else None


class HabanaFSDP(_Distributed):
    """Data parallelism with parameters, gradients and optimizer state split over all processes (FSDP2)."""

    strategy_name: str = "habana_fsdp"

    def setup_environment(self) -> None:
        """All processes share the data; none splits a matrix."""
        share_data(self, self.num_nodes * self.num_processes)  # type: ignore[attr-defined]
        super().setup_environment()

    def setup(self, trainer: Any) -> None:
        """Shard what does not shard itself in `configure_model`, then as Lightning does."""
        module = self.lightning_module  # type: ignore[attr-defined]
        base: Any = next(kind for kind in type(module).__mro__ if kind.__name__ == "LightningModule")
        if "configure_model" not in vars(module) and type(module).configure_model is base.configure_model:
            half = torch.bfloat16 if str(self.precision_plugin.precision).startswith("bf16") else None
            shard(module, self.device_mesh["data_parallel"], half)  # type: ignore[attr-defined]
            module.configure_model = _done
            if hasattr(module, "materialise"):
                module.materialise(self.root_device)  # type: ignore[attr-defined]
        super().setup(trainer)


def _done(*arguments: Any) -> None:
    """In place of a module's configure_model: it is sharded already."""


class HabanaDDPStrategy(HabanaDDP, DDPStrategy):
    """`strategy="habana_ddp"`; takes what Lightning's DDPStrategy takes."""


class HabanaFSDPStrategy(HabanaFSDP, ModelParallelStrategy):
    """`strategy="habana_fsdp"`; takes `process_group_backend`, `timeout` and `save_distributed_checkpoint`."""


class GaudiSingle(GaudiStrategy):
    """One process on one device, which is the accelerator's first."""

    strategy_name: str = "gaudi_single"
    _chosen: Sequence[torch.device] = ()

    @property
    def parallel_devices(self) -> Sequence[torch.device] | None:
        """None until Lightning asks the accelerator."""
        return self._chosen or None

    @parallel_devices.setter
    def parallel_devices(self, devices: list[torch.device]) -> None:
        if len(devices) != 1:
            raise ConfigError(
                f"gaudi_single was given {len(devices)} devices: give one, or strategy habana_ddp or habana_fsdp."
            )
        self._chosen = devices

    @property
    def root_device(self) -> torch.device:
        """The accelerator's; until there is one, what Lightning has by default."""
        if self._chosen:
            return self._chosen[0]
        root: torch.device = super().root_device  # type: ignore[misc]
        return root


class GaudiSingleStrategy(GaudiSingle, SingleDeviceStrategy):
    """`strategy="gaudi_single"`."""
