"""Words of sentences that refuse something: what was given, what was probably meant, and why a file is not read."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any


def meant(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: the name that is nearest to ``word``, or else all that are known."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f": did you mean {near[0]!r}?" if near else f": the names are {', '.join(names)}"


def shown(value: Any) -> str:
    """A value as it is written in YAML and JSON, cut where it is long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def reason(error: Exception) -> str:
    """Why a file is not read or understood, on one line and without the number of the error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return " ".join(str(error).split())
