"""Pairs of sentences under the names by which programs ask the hub for them, and a tiny encoder."""

from __future__ import annotations

import json
import random
from pathlib import Path

from stand_ins import BERT, WORDS, sentence, word_tokenizer
from stand_ins_media import write_table

TRIPLET = ("anchor", "positive", "negative")
FEW = {"train": 400}
"""As many as fill three batches of 128."""
SETS = {
    ("all-nli", "pair-class"): (("premise", "hypothesis", "label"), {"train": 10_000, "dev": 1000}),
    ("all-nli", "triplet"): (TRIPLET, {"train": 10_000, "dev": 1000}),
    ("stsb", "default"): (("sentence1", "sentence2", "score"), {"train": 400, "validation": 16, "test": 16}),
    ("sentence-compression", "default"): (("text", "simplified"), FEW),
    ("simple-wiki", "default"): (("text", "simplified"), FEW),
    ("altlex", "default"): (("text", "simplified"), FEW),
    ("quora-duplicates", "triplet"): (TRIPLET, FEW),
    ("coco-captions", "default"): (("caption1", "caption2"), FEW),
    ("flickr30k-captions", "default"): (("caption1", "caption2"), FEW),
    ("yahoo-answers", "title-question-answer-pair"): (("question", "answer"), FEW),
    ("stackexchange-duplicates", "title-title-pair"): (("title1", "title2"), FEW),
}
"""Columns and rows of each configuration of a set: as many as programs take of it."""


def sentences(folder: Path) -> None:
    """All sets, an encoder, and one that guides another by the only name that a program takes."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    for encoder in ("encoder", "all-MiniLM-L6-v2"):
        BertModel(BertConfig(**BERT)).save_pretrained(folder / encoder)
        word_tokenizer(folder / encoder)
        file = folder / encoder / "tokenizer_config.json"
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
