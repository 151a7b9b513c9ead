"""batch.json of the output directory: batches that were found, by everything that they depend on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gaudi3_scale.batch.search import BatchTrial, FoundBatch
from gaudi3_scale.files import write_atomically

FILE = "batch.json"
PACKAGES = ("torch", "transformers", "lightning", "habana-torch-plugin", "gaudi3-scale")


def key(facts: Mapping[str, Any]) -> str:
    """A digest of facts, and of the versions of what computes."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = ""
    text = json.dumps([facts, versions], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read(folder: Path, digest: str) -> FoundBatch | None:
    """What was found for a key; None if nothing was, or the file is damaged."""
    try:
        value = json.loads((folder / FILE).read_text(encoding="utf-8"))[digest]
        found = FoundBatch(**{**value, "trials": [BatchTrial(**each) for each in value["trials"]]})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found.batch, int) and found.batch >= 1 else None


def write(folder: Path, digest: str, found: FoundBatch) -> None:
    """Remember it. Raises OSError."""
    try:
        known = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    write_atomically(folder / FILE, json.dumps({**known, digest: asdict(found)}, indent=1) + "\n")
