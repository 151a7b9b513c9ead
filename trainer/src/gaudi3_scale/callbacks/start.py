"""The last preparations before the first step, the same for a fresh and a resumed run."""

from __future__ import annotations

import gc
from typing import Any

import lightning.pytorch as pl
import torch

from gaudi3_scale.config import Config
from gaudi3_scale.device import Device
from gaudi3_scale.distributed import Topology
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.models.objectives import example
from gaudi3_scale.randomness import restore, seed_all


class Start(pl.Callback):
    """Settles gradient buckets, random state and the garbage collector."""

    def __init__(self, config: Config, device: Device, topology: Topology, rank_state: dict[str, Any] | None) -> None:
        """`rank_state` is this rank's part of the checkpoint; without it the seed decides."""
        self._config = config
        self._device = device
        self._topology = topology
        self._rank_state = rank_state

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called once everything is on its device."""
        assert isinstance(pl_module, LanguageModule)
        if self._topology.world_size > 1:
            self._settle_buckets(trainer, pl_module)
        pl_module.reset_sums()
        seed_all(self._config.train.seed + 1 + self._topology.rank)
        if self._rank_state is not None:
            restore(self._rank_state["random"], self._device)
            pl_module.reset_sums(self._rank_state["loss_sum"], self._rank_state["loss_count"])
        # Imports left hundreds of thousands of objects that the collector would visit during training.
        gc.collect()
        gc.freeze()

    def _settle_buckets(self, trainer: pl.Trainer, module: LanguageModule) -> None:
        """Let DDP arrange its gradient buckets before the first step instead of after it.

        It does so once, by the order in which gradients came. From three processes on, the arrangement decides in
        which order a ring sums, so a resumed run would differ from an uninterrupted one in its first step.
        """
        train = self._config.train
        samples = example(self._config.model, train.micro_batch_size, self._device.torch_device())
        for _ in range(2):
            loss = trainer.strategy.training_step(samples, 0)
            assert isinstance(loss, torch.Tensor)
            loss.backward()  # type: ignore[no-untyped-call]
            self._device.step_boundary()
            module.zero_grad()
