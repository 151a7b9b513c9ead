"""Folders under the names by which programs ask the hub for data and models: a folder of that name is taken instead."""

from __future__ import annotations

import random
from pathlib import Path

from stand_ins import WORDS
from stand_ins_media import write_table


def complaints(folder: Path) -> None:
    """Texts with a label, as `regisss/raft` has them."""
    draw = random.Random(7)
    rows = [{"Abstract Note": _words(draw, 6), "ID": number, "Label": number % 2} for number in range(64)]
    path = folder / "regisss" / "raft" / "train.parquet"
    write_table(path, rows, **{"Abstract Note": "string", "ID": "int64", "Label": tuple(WORDS[:2])})


def _words(draw: random.Random, count: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(count))
