# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The history of a node's health: verdicts that came and went, and steps of its remediation.

It lies in the folder of the fence. It is written whole, so that a power cut leaves the old one or the new one.
"""

from __future__ import annotations

import json
import os
from typing import Any

from .._files import make_folder, write_file
from .fence import FOLDER

HISTORY = "history.jsonl"
#: How many lines the history keeps, the newest; at most some 300 bytes each.
LIMIT = 1000
_MESSAGE = 500


def entries(folder: str = FOLDER, last: int | None = None) -> list[dict[str, Any]]:
    """The history, the oldest first; lines that are no entries are left out."""
    try:
        with open(os.path.join(folder, HISTORY), encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found if last is None else found[len(found) - min(last, len(found)) :]


def append(new: list[dict[str, Any]], folder: str = FOLDER) -> None:
    """Add entries to the history, and drop the oldest beyond the limit."""
    if not new:
        return
    short = [
        {key: value[:_MESSAGE] if isinstance(value, str) else value for key, value in entry.items()} for entry in new
    ]
    make_folder(folder)
    lines = [json.dumps(entry, sort_keys=True) + "\n" for entry in [*entries(folder), *short][-LIMIT:]]
    write_file(os.path.join(folder, HISTORY), "".join(lines))
