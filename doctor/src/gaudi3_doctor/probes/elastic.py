"""A worker for torchrun: the first time one process fails on purpose, the second time all add up their ranks."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

from .base import acquired, leave

_OTHERS_START = 60.0
"""Seconds in which the other workers start, on a busy node as well."""


def main(folder: str) -> None:
    """Count the starts of this worker in a file of its rank."""
    rank = int(os.environ["RANK"])
    note = Path(folder) / f"starts-{rank}"
    starts = int(note.read_text()) + 1 if note.exists() else 1
    note.write_text(str(starts))
    last = int(os.environ["WORLD_SIZE"]) - 1
    if starts == 1 and rank == last:
        _wait_for([Path(folder) / f"starts-{other}" for other in range(last)])
        sys.exit(3)
    os.environ.setdefault("PT_HPU_LAZY_MODE", "0")
    torch = importlib.import_module("torch")
    importlib.import_module("habana_frameworks.torch.core")
    importlib.import_module("habana_frameworks.torch.distributed.hccl")
    torch.distributed.init_process_group("hccl")
    # After the others are there: torchrun ends a worker that waits for them, and a card that it held would reset.
    acquired(importlib.import_module("habana_frameworks.torch.hpu").init)
    value = torch.full((8,), float(rank + 1), device="hpu")
    torch.distributed.all_reduce(value)
    found = {"rank": rank, "starts": starts, "sum": float(value[0].cpu())}
    (Path(folder) / f"elastic-{rank}.json").write_text(json.dumps(found))
    leave()


def _wait_for(notes: list[Path]) -> None:
    """Wait until each of the notes is written: torchrun ends the others with this one, and an end is not a start."""
    deadline = time.monotonic() + _OTHERS_START
    while time.monotonic() < deadline and not all(note.exists() and note.read_text() for note in notes):
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1])
