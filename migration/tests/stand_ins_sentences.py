"""Pairs of sentences under the names by which programs ask the hub for them, and a tiny encoder."""

from __future__ import annotations

import json
import random
from pathlib import Path

from stand_ins import BERT, WORDS, sentence, word_tokenizer
from stand_ins_media import write_table

SETS = {
    ("all-nli", "pair-class"): (("premise", "hypothesis", "label"), {"train": 10_000, "dev": 1000}),
    ("stsb", "default"): (("sentence1", "sentence2", "score"), {"train": 400, "validation": 16, "test": 16}),
}
"""Columns and rows of each configuration of a set: as many as programs take of it."""


def sentences(folder: Path) -> None:
    """All sets, and an encoder."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    BertModel(BertConfig(**BERT)).save_pretrained(folder / "encoder")
    word_tokenizer(folder / "encoder")
    file = folder / "encoder" / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_max_length": 32}))
    for name in ("bert-base-uncased", "distilbert-base-uncased"):
        (folder / "Habana" / name).mkdir(parents=True)
        settings = (folder / "gaudi" / "gaudi_config.json").read_text()
        (folder / "Habana" / name / "gaudi_config.json").write_text(settings)
    draw = random.Random(8)
    kinds = {"label": tuple(WORDS[:3]), "score": "float64"}
    cards: dict[str, list[str]] = {}
    for (name, part), (columns, splits) in SETS.items():
        card = cards.setdefault(name, ["---", "configs:"])
        card += [f"- config_name: {part}", "  data_files:"]
        for split, count in splits.items():
            rows = [{each: _value(draw, each) for each in columns} for _ in range(count)]
            path = folder / "sentence-transformers" / name / part / f"{split}.parquet"
            write_table(path, rows, **{each: kinds.get(each, "string") for each in columns})
            card += [f"  - split: {split}", f"    path: {part}/{split}.parquet"]
    for name, card in cards.items():
        (folder / "sentence-transformers" / name / "README.md").write_text("\n".join([*card, "---"]) + "\n")


def _value(draw: random.Random, column: str) -> str | int | float:
    if column == "label":
        return draw.randrange(3)
    return draw.random() if column == "score" else sentence(draw, 6)
