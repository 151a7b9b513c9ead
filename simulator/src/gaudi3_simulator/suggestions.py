"""What was probably meant by a word that is not known."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


def meant(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'NAME'?`` for the nearest name; empty where none is near, or where only a number differs."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.8)
    if not near or re.sub(r"\d+", "#", near[0]) == re.sub(r"\d+", "#", word):
        return ""
    return f" Did you mean '{near[0]}'?"


def meant_choice(message: str) -> str:
    """The same for a message of argparse about a choice."""
    found = _CHOICE.search(message)
    return meant(found[1], re.findall(r"[\w.-]+", found[2])) if found else ""
