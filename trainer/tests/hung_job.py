"""`gaudi3-train` with cards whose collectives take no timeout, of which one process stops in the middle of a step.

    STOP_IN=folder STOP_STEP=4 SLOW_STEP=1 SLOW_SECONDS=7

The process of rank 1 writes the file `stopped` and stops itself, in the backward pass of `STOP_STEP`: the others have
begun the all-reduce of their gradients. In `SLOW_STEP` it is merely slow. A step of 0 is none.
"""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

REAL = dist.ProcessGroupGloo


def patient(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """What the simulated `hccl` reduces with; the groups that torch itself makes of gloo are not made here."""
    return REAL(store, rank, size, timedelta(hours=1))


def install() -> None:
    """Stop, or be slow, where the environment says so."""
    from gaudi3_scale.step.module import LanguageModule

    original = LanguageModule.training_step
    stop, slow = int(os.environ["STOP_STEP"]), int(os.environ["SLOW_STEP"])

    def step(self: LanguageModule, batch: Any, index: int) -> Any:
        loss = original(self, batch, index)
        now = self.trainer.global_step + 1

        def here(gradient: torch.Tensor) -> None:
            if now == slow:
                time.sleep(float(os.environ["SLOW_SECONDS"]))
            if now == stop:
                (Path(os.environ["STOP_IN"]) / "stopped").touch()
                os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(60)  # any thread may take the signal: this one must not go on until it has

        if os.environ["RANK"] == "1" and now in (stop, slow):
            loss.register_hook(here)
        return loss

    LanguageModule.training_step = step  # type: ignore[method-assign]


if __name__ == "__main__":
    dist.ProcessGroupGloo = patient  # type: ignore[assignment, misc]
    install()
    from gaudi3_scale.cli import main

    main()
