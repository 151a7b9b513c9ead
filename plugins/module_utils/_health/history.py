# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node keeps of its own health: the fence that keeps jobs away, its history, and metrics for the node exporter.

All lies in one folder of root's. Files are written whole, so that a power cut leaves the old one or the new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .._files import make_folder, write_file

FOLDER = "/var/lib/gaudi3-scale/health"
FENCE, HISTORY = "fence.json", "history.jsonl"
FENCE_PATH = f"{FOLDER}/{FENCE}"
#: In memory, for a node whose disk is full or read-only. It is gone with a reboot, after which the loop fences again.
RUNTIME, RUNTIME_FENCE = "/run/gaudi3-scale", "fence"
RUNTIME_FENCE_PATH = f"{RUNTIME}/{RUNTIME_FENCE}"
#: How many lines the history keeps, the newest; at most some 300 bytes each.
LIMIT = 1000
_MESSAGE = 500


def fence(folder: str = FOLDER, runtime: str = RUNTIME) -> dict[str, Any] | None:
    """Why the node is out of service; None where it is in service.

    A fence in ``runtime`` counts as well: it is there where the disk could not take one. A file that cannot be
    understood counts as a fence: whoever wrote it wanted the node out of service.
    """
    kept = _fence_in(os.path.join(folder, FENCE))
    return _fence_in(os.path.join(runtime, RUNTIME_FENCE)) if kept is None else kept


def _fence_in(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            content = json.loads(stream.read(1 << 20))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"reason": "its fence cannot be read", "step": "", "jobs": []}


def refusal(found: Mapping[str, Any]) -> str:
    """Why no job may start on a node with this fence."""
    step = f" (step: {found['step']})" if found.get("step") else ""
    return (
        f"This node is out of service{step}: {str(found.get('reason') or 'no reason is given').rstrip('.')}; leave it "
        "out of the job, or give it back with the playbook gaudi3.scale.heal, which tests it first."
    )


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
