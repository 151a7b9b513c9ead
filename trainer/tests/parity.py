"""Trains small models of three architectures and saves their weights: `parity.py DEVICE OUT STRATEGY...`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from gaudi3_scale import GaudiTrainer

SHAPES: dict[str, Any] = {
    "llama": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 2}),
    "mixtral": (MixtralForCausalLM, MixtralConfig, {"num_key_value_heads": 2, "num_local_experts": 4}),
    # A device draws its own dropout, so there is none.
    "bert": (BertForMaskedLM, BertConfig, {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}),
}
COMMON = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
}


class Module(pl.LightningModule):
    """As a user writes one."""

    def __init__(self, shape: str) -> None:
        super().__init__()
        torch.manual_seed(7)
        model, config, extra = SHAPES[shape]
        self.model = model(config(**COMMON, **extra))

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        return self.model(input_ids=batch, labels=batch).loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=False, foreach=False)


def train(device: str, strategy: str, shape: str, out: Path) -> None:
    batches = torch.randint(0, 96, (24, 16), generator=torch.Generator().manual_seed(11))
    trainer = GaudiTrainer(
        accelerator=device,
        strategy=strategy,
        max_steps=5,
        max_epochs=-1,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Module(shape).train()
    trainer.fit(module, torch.utils.data.DataLoader(batches, batch_size=2))
    state = {
        name: (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().cpu()
        for name, value in module.model.state_dict().items()
    }
    if trainer.is_global_zero:
        torch.save(state, out / f"{shape}-{device}-{strategy}.pt")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for strategy in sys.argv[3:]:
        for shape in SHAPES:
            train(sys.argv[1], strategy, shape, Path(sys.argv[2]))
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads now and then abort a process whose peer leaves first
