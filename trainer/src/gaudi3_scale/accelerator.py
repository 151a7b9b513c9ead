"""Lightning's view of the device: accelerator, strategy and trainer, each chosen explicitly.

Left to itself Lightning 2.6 knows no HPU, falls back to the CPU in silence, and broadcasts once per batch.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.environments import TorchElasticEnvironment
from lightning.pytorch.accelerators import Accelerator, CPUAccelerator, CUDAAccelerator
from lightning.pytorch.strategies import SingleDeviceStrategy, Strategy

from gaudi3_scale.config import Config
from gaudi3_scale.device import Device, resolve
from gaudi3_scale.distributed import Topology
from gaudi3_scale.integration.strategies import HabanaDDPStrategy, HabanaFSDPStrategy
from gaudi3_scale.lean import slim
from gaudi3_scale.precision import build_precision


class HPUAccelerator(Accelerator):
    """Gaudi cards, of which a process uses the one of its local rank."""

    def setup_device(self, device: torch.device) -> None:
        """Make it the current one."""
        torch.get_device_module(device).set_device(device)

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Memory statistics as the card's driver counts them."""
        stats: dict[str, Any] = torch.get_device_module(torch.device(device)).memory_stats(device)
        return stats

    def teardown(self) -> None:
        """Nothing is held."""

    @staticmethod
    def parse_devices(devices: Any) -> int:
        """The number of cards this node's processes use."""
        return int(devices)

    @staticmethod
    def get_parallel_devices(devices: int) -> list[torch.device]:
        """One per local rank."""
        return [torch.device("hpu", index) for index in range(devices)]

    @staticmethod
    def auto_device_count() -> int:
        """Never guessed: the number of processes is torchrun's to say."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Is there a card?"""
        return resolve("auto", 0, 1).type == "hpu"

    @staticmethod
    def name() -> str:
        """As in `device: hpu`."""
        return "hpu"


ACCELERATORS: dict[str, type[Accelerator]] = {
    "cpu": CPUAccelerator,
    "cuda": CUDAAccelerator,
    "hpu": HPUAccelerator,
}


def build_trainer(
    config: Config, device: Device, topology: Topology, steps: int, callbacks: list[pl.Callback]
) -> pl.Trainer:
    """A trainer that makes this many optimizer steps and nothing besides: what else happens is in the callbacks."""
    accelerator = ACCELERATORS[device.type]()
    plugins: list[Any] = [build_precision(config.train.precision, device)]
    strategy: Strategy
    if topology.world_size > 1:
        plugins.append(TorchElasticEnvironment())
        timeout = timedelta(seconds=config.train.collective_timeout)
        if config.train.strategy == "habana_fsdp":
            strategy = HabanaFSDPStrategy(process_group_backend=device.backend, timeout=timeout)
        else:
            strategy = HabanaDDPStrategy(
                process_group_backend=device.backend,
                timeout=timeout,
                broadcast_buffers=False,  # they are constants
                gradient_as_bucket_view=True,
            )
    else:
        strategy = SingleDeviceStrategy(device=device.torch_device())
    trainer = pl.Trainer(
        accelerator=accelerator,
        strategy=strategy,
        devices=topology.local_world_size,
        num_nodes=topology.nodes,
        plugins=plugins,
        callbacks=callbacks,
        max_epochs=-1,
        max_steps=steps,
        accumulate_grad_batches=config.train.accumulation_steps,
        gradient_clip_val=config.train.gradient_clip or None,
        default_root_dir=config.output_dir,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
    )
    drop_sigterm_broadcast(trainer)
    slim(trainer)
    return trainer


def drop_sigterm_broadcast(trainer: pl.Trainer) -> None:
    """Take out the broadcast, with a device synchronisation, that Lightning 2.6 makes before every batch.

    It tells all ranks of a SIGTERM that rank 0 got, and swallows the error if a rank is gone. Here a SIGTERM ends the
    process at once and the others notice at their next collective.
    """
    loop = trainer.fit_loop.epoch_loop
    if not hasattr(loop, "_broadcast_sigterm_tensor"):
        raise RuntimeError("lightning's epoch loop has changed: review drop_sigterm_broadcast")
    loop._broadcast_sigterm_tensor = lambda: None
