"""Pairs of answers for tests, and the loss that this package computes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import peft
import preference_trl as trl
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import collect
from gaudi3_scale.data.pair_samples import PairSamples
from gaudi3_scale.models.preference import FIGURES, PreferenceLoss

TEXTS = [
    {"prompt": "Two and two? ", "chosen": "Four.", "rejected": "I do not know."},
    {"prompt": "A word: ", "chosen": "Rain, and then a lot more of it until the end of all days.", "rejected": "No"},
    {"prompt": "Ünïcode? ", "chosen": "Yes", "rejected": "Nö"},
    {"prompt": "Say it again. ", "chosen": "Again.", "rejected": "Again, again."},
    {"prompt": "?", "chosen": "!", "rejected": "?"},
]
"""The second chosen answer does not fit into the context."""


def messages(*texts: str) -> list[dict[str, str]]:
    """Turns of the user and the assistant, of whom the first one begins."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def answer(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


TALKS = [
    {"prompt": messages("2?"), "chosen": answer("Two."), "rejected": answer("No.")},
    {"prompt": messages("a", "b", "c"), "chosen": answer("d"), "rejected": answer("Nothing.")},
]


def write(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def batch_of(records: list[Any], home: Path, folder: Path) -> torch.Tensor:
    """Of all records, in their order."""
    source = write(folder / "pairs.jsonl", records)
    config = DataConfig(source=str(source), content="preference", tokenizer=str(home))
    samples = PairSamples(collect(config, folder / "data", context=trl.CONTEXT), config, trl.CONTEXT, 0)
    part = samples._pairs[0]
    return samples.fetch(np.argsort(part._documents))


def computed(case: str, batch: torch.Tensor, chunks: int = 0) -> dict[str, float]:
    """What trl's script computes, by this package."""
    settings = trl.CASES[case]
    loss = PreferenceLoss(settings["beta"], chunks, settings["adapters"])
    table = None
    if settings["adapters"]:
        model = peft.get_peft_model(trl.model(), peft.LoraConfig(**trl.LORA))
        trl.fill(trl.adapters(model), 0.2, 0.0)
    else:
        model = trl.model(0.01)
        with torch.no_grad():
            table = loss.log_probabilities(trl.model(), batch)[torch.argsort(batch[:, 4, 0])]
    value, figures = loss(model, batch, table)
    value.backward()
    norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    return {
        "loss": value.item(),
        "gradient_norm": torch.stack(norms).norm().item(),
        **dict(zip(FIGURES, figures.tolist(), strict=True)),
    }
