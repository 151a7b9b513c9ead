"""A user's own training script, with a Trainer of Lightning's and the callback; run by the tests under the launcher.

own_trainer.py FOLDER BATCHES [plain]     `plain` leaves the callback out
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import lightning.pytorch as pl
import torch
from torch import nn

from gaudi3_scale.interruption import InterruptionCallback


class Loader:
    """This rank's batches; it knows where it was, without which Lightning begins an interrupted epoch anew."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data
        self.next = 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        rank = torch.distributed.get_rank()
        for position in range(self.next, len(self.data), 2):
            self.next = position + 2
            yield self.data[position + rank]
        self.next = 0

    def __len__(self) -> int:
        return len(self.data) // 2

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


class Module(pl.LightningModule):
    """Writes down how far it is, and waits in a batch until `go` is there."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.layer = nn.Linear(4, 1)
        self.batches = 0

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.batches += 1
        self._hold("training", self.batches == 5)
        self._hold("synchronisation", self.batches == 6)
        return self.layer(batch).square().mean()

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        self._hold("validation", not self.trainer.sanity_checking and batch_idx == 1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def _hold(self, phase: str, due: bool) -> None:
        if due and (self.folder / f"hold-{phase}").exists() and self.trainer.global_rank == 1:
            (self.folder / "held").touch()
            while not (self.folder / "go").exists():
                time.sleep(0.01)


def main(folder: Path, plain: bool) -> None:
    """Train."""
    torch.manual_seed(1)
    data = torch.randn(16, 2, 4)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=3,
        accumulate_grad_batches=2,
        val_check_interval=4,
        num_sanity_val_steps=0,
        default_root_dir=folder,
        callbacks=[] if plain else [InterruptionCallback(grace=20)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Module(folder)
    trainer.fit(module, Loader(data), Loader(data[:6]), ckpt_path=InterruptionCallback.newest(trainer))
    if trainer.is_global_zero:
        torch.save((trainer.global_step, module.state_dict()), folder / "result.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "plain" in sys.argv)
