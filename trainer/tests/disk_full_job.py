"""Fills a filesystem after one step, and empties it after another.

Set by environment variables, and installed by the tests' own entry point: nothing of it is in the package.

    FILL=folder FILL_AFTER=20 FILL_UNTIL=80     `folder` is on the filesystem; without FILL_UNTIL it stays full
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def install() -> None:
    """Do it where the environment asks for it."""
    if "FILL" not in os.environ:
        return
    from torch.optim.optimizer import register_optimizer_step_post_hook

    filler, done = Path(os.environ["FILL"]) / "filler", 0
    after, until = int(os.environ["FILL_AFTER"]), int(os.environ.get("FILL_UNTIL", 0))

    def stepped(*_: Any) -> None:
        nonlocal done
        done += 1
        if done == after:
            fill(filler)
        elif done == until:
            filler.unlink()

    register_optimizer_step_post_hook(stepped)


def fill(path: Path) -> None:
    """Write until nothing more can be."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12, 1):
        try:
            while True:
                os.write(descriptor, bytes(size))
        except OSError:
            continue
    os.close(descriptor)
