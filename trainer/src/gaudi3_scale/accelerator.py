"""Lightning's view of the device: accelerator, strategy and trainer, each chosen explicitly.

Left to itself Lightning 2.6 knows no HPU, falls back to the CPU in silence, and broadcasts once per batch.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import lightning.pytorch as pl
from lightning.fabric.plugins.environments import TorchElasticEnvironment
from lightning.pytorch.strategies import Strategy

from gaudi3_scale.config import Config
from gaudi3_scale.device import Device
from gaudi3_scale.distributed import Topology
from gaudi3_scale.integration.accelerator import GaudiAccelerator
from gaudi3_scale.integration.strategies import GaudiSingleStrategy, HabanaDDPStrategy, HabanaFSDPStrategy
from gaudi3_scale.lean import slim
from gaudi3_scale.precision import build_precision


def build_trainer(
    config: Config, device: Device, topology: Topology, steps: int, callbacks: list[pl.Callback]
) -> pl.Trainer:
    """A trainer that makes this many optimizer steps and nothing besides: what else happens is in the callbacks."""
    accelerator = GaudiAccelerator(device.type)
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
        strategy = GaudiSingleStrategy()
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
    slim(trainer)
    return trainer
