"""A LightningModule and Lightning's Trainer on Gaudi cards, with three callbacks that make it a job.

    torchrun --nproc-per-node=8 train.py --text corpus.txt                on one node, by hand
    ansible-playbook playbooks/train.yml -e @examples/own_script/job.yml  on all nodes, as a job

Start it again with the same command after a kill or an interruption: it resumes from its newest checkpoint.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import lightning.pytorch as pl
import torch
from torch import nn

from gaudi3_scale import GaudiAccelerator
from gaudi3_scale.checkpoint import GaudiCheckpoint
from gaudi3_scale.data import PackedDataset
from gaudi3_scale.interruption import InterruptionCallback
from gaudi3_scale.throughput.callback import ThroughputCallback

FOLDER = Path(os.environ.get("GAUDI3_JOB_DIRECTORY", "run"))


class ByteModel(pl.LightningModule):
    """Predicts each byte of a text from the bytes before it."""

    def __init__(self, width: int = 64, learning_rate: float = 3e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.embedding = nn.Embedding(257, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, 257)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        seen = self.embedding(tokens)
        mean = seen.cumsum(1) / torch.arange(1, seen.shape[1] + 1, device=seen.device).unsqueeze(1)
        logits: torch.Tensor = self.head(seen + self.layers(seen + mean))
        return logits

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        logits = self(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.hparams["learning_rate"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--text", default="stdlib", help="a file or folder of text; stdlib: Python's own sources")
    arguments = parser.parse_args()

    pl.seed_everything(1)
    checkpoint = GaudiCheckpoint(FOLDER / "checkpoints", every_n_steps=arguments.save_every)
    trainer = pl.Trainer(
        accelerator=GaudiAccelerator(),
        num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", 1)),  # set by torchrun
        precision="bf16-mixed",
        max_steps=arguments.steps,
        max_epochs=-1,
        callbacks=[checkpoint, InterruptionCallback(save=checkpoint), ThroughputCallback(directory=FOLDER)],
        default_root_dir=FOLDER,
        enable_checkpointing=False,  # GaudiCheckpoint takes the place of Lightning's own
        enable_progress_bar=False,
        logger=False,
    )
    data = PackedDataset(arguments.text, FOLDER / "data", sequence_length=64, batch_size=16)
    trainer.fit(ByteModel(), train_dataloaders=data)
    if trainer.is_global_zero:
        print(f"trained to step {trainer.global_step}", flush=True)


if __name__ == "__main__":
    main()
