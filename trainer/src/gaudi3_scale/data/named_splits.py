"""Files of a folder that are named as parts of a data set which are not all trained on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: As the Hugging Face hub reads names of files and folders.
SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_WORDS = {word: split for split, words in SPLITS.items() for word in words}


def split_of(name: str) -> str | None:
    """The split that a relative path names, in the file's name or else in a folder's; None where it names none, or
    more than one.
    """
    *folders, file = name.lower().split("/")
    for part in (file, *reversed(folders)):
        found = {_WORDS[word] for word in re.split(r"[^a-z]+", part) if word in _WORDS}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def several_splits(names: Sequence[str], of_records: Iterable[bool]) -> list[str]:
    """The splits of a folder's files, in the order above, if what is trained on is beside what is held out.

    A folder of texts counts only where every file names a split: sources of programs have folders called test.
    """
    splits = [split_of(name) for name in names]
    records = [split for split, is_record in zip(splits, of_records, strict=True) if is_record]
    found = set(records) if records else set(splits)
    if not records and None in found:
        return []
    named = [split for split in SPLITS if split in found]
    return named if "train" in named and len(named) > 1 else []
