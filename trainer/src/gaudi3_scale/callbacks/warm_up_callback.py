"""The last preparations before the first step, the same for a fresh and a resumed run."""

from __future__ import annotations

import gc
from typing import Any

import lightning.pytorch as pl
import torch

from gaudi3_scale.distributed.randomness import restore, seed_all
from gaudi3_scale.models.objectives import batch_shape, example
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule


class WarmUpCallback(pl.Callback):
    """Settles gradient buckets, random state and the garbage collector."""

    def __init__(self, run: Run, rank_state: dict[str, Any] | None) -> None:
        """`rank_state` is this rank's part of the checkpoint; without it the seed decides."""
        self._run = run
        self._rank_state = rank_state

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called once everything is on its device."""
        assert isinstance(pl_module, LanguageModule)
        if self._run.world_size > 1 and self._run.config.train.strategy != "habana_fsdp":  # which has no buckets
            self._settle_buckets(trainer, pl_module)
        pl_module.reset_sums()
        seed_all(self._run.config.train.seed + 1 + self._run.rank)
        if self._rank_state is not None:
            restore(self._rank_state["random"], self._run.device)
            state = self._rank_state
            pl_module.reset_sums(state["loss_sum"], state["loss_count"], state.get("figures", ()))
        # Imports left hundreds of thousands of objects that the collector would visit during training.
        gc.collect()
        gc.freeze()

    def _settle_buckets(self, trainer: pl.Trainer, module: LanguageModule) -> None:
        """Let DDP arrange its gradient buckets before the first step instead of after it.

        It does so once, by the order in which gradients came. From three processes on, the arrangement decides in
        which order a ring sums, so a resumed run would differ from an uninterrupted one in its first step.
        """
        config, device = self._run.plan.config, self._run.device
        size, on = config.train.micro_batch_size, device.torch_device()
        if config.data.prefers:
            samples = torch.zeros(batch_shape(config, size), dtype=torch.int64, device=on)
        else:
            samples = example(config.model, size, on)
        for _ in range(2):
            loss = trainer.strategy.training_step(samples, 0)
            assert isinstance(loss, torch.Tensor)
            loss.backward()  # type: ignore[no-untyped-call]
            device.step_boundary()
            module.zero_grad()
