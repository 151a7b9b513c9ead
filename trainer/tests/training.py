"""A small training with everything a checkpoint has to hold, for tests of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from gaudi3_scale.checkpoint import CheckpointStore, Saver
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.hyperparameters import advance
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.restore import capture
from gaudi3_scale.checkpoint.saver import Snapshot

WIDTH = 24


class Training:
    """Three layers, AdamW in two groups, a schedule; one batch of the global order per step."""

    def __init__(self, sharded: bool = False) -> None:
        torch.manual_seed(0)
        # An odd number of rows: the shards are of unequal size.
        self.model: nn.Module = nn.Sequential(nn.Linear(8, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 7), nn.Linear(7, 1))
        if sharded:
            from torch.distributed.fsdp import fully_shard

            fully_shard(self.model)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (step + 1))
        self.done = 0

    def train(self, steps: int) -> list[float]:
        """Make steps; the losses of this rank's (equal) batches."""
        losses = []
        for _ in range(steps):
            batch = torch.randn(4, 8, generator=torch.Generator().manual_seed(self.done))
            loss = self.model(batch).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
            self.done += 1
            losses.append(loss.item())
        return losses

    def snapshot(self, step: int) -> Snapshot:
        """For `Saver.bind`."""
        tensors, training = capture(self.model, [self.optimizer])
        shared = {"step": step, "scheduler": self.scheduler.state_dict()}
        return Snapshot(tensors, training, shared, rank={"random": torch.get_rng_state()})

    def resume(self, checkpoint: Any, peers: CheckpointPeers) -> None:
        """Continue from a checkpoint."""
        state = checkpoint.state()
        load(checkpoint, peers, self.model, [self.optimizer], state)
        advance(self.scheduler, state["scheduler"]["last_epoch"])
        self.done = state["step"]

    def weights(self) -> dict[str, Any]:
        """All weights and moments, whole, as lists."""
        tensors, rest = capture(self.model, [self.optimizer])
        whole = {n: t.full_tensor() if hasattr(t, "full_tensor") else t for n, t in tensors.items()}
        return {**{n: t.tolist() for n, t in whole.items()}, "groups": rest["groups"]}


def saver(
    folder: Path, training: Training, peers: CheckpointPeers | None = None, keep: int = 2, **options: Any
) -> Saver:
    """A saver of a training's state."""
    made = Saver(CheckpointStore(folder, keep, options.pop("log", print)), peers or CheckpointPeers.single(), **options)
    made.bind(training.snapshot)
    return made
