"""Hugging Face Trainer on the cards: `trainer.py fp32|bf16|compile|predict`."""

from __future__ import annotations

import math
import os
import sys

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

VOCABULARY, LENGTH = 61, 12


class Tokens(Dataset):  # type: ignore[type-arg]
    """Random sequences, the same in every process."""

    def __init__(self, count: int) -> None:
        self.rows = torch.randint(0, VOCABULARY, (count, LENGTH), generator=torch.Generator().manual_seed(3))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main(mode: str) -> None:
    """Train three steps, or predict, and look at what came out."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    arguments = TrainingArguments(
        output_dir="out", max_steps=3, per_device_train_batch_size=3, per_device_eval_batch_size=3, report_to=[],
        save_strategy="no", bf16=mode == "bf16", torch_compile=mode == "compile", learning_rate=1e-2, logging_steps=1,
        dataloader_pin_memory=False,
    )  # fmt: skip
    assert arguments.device.type == "hpu", f"the Trainer chose {arguments.device}"
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens(24), eval_dataset=Tokens(11))
    if mode == "predict":
        # 11 rows over the cards: the last batch is not whole, so lengths differ before they are gathered.
        predictions = trainer.predict(Tokens(11))
        assert predictions.predictions.shape == (11, LENGTH, VOCABULARY), predictions.predictions.shape
        assert math.isfinite(predictions.metrics["test_loss"])
    else:
        before = model.model.layers[0].mlp.up_proj.weight.detach().cpu().clone()
        loss = trainer.train().training_loss
        after = model.model.layers[0].mlp.up_proj.weight.detach().cpu()
        assert math.isfinite(loss), loss
        assert not torch.equal(before, after), "three steps changed no weight"
    print(f"rank {os.environ.get('RANK', '0')}: {mode} done on {arguments.device}")


if __name__ == "__main__":
    main(sys.argv[1])
