"""Makes a step's loss or weights NaN on one rank.

Set by environment variables, and installed by the tests' own entry point: nothing of it is in the package.

    POISON=loss POISON_STEPS=7,8 POISON_RANK=1     the loss and its gradients are NaN in these optimizer steps
    POISON=report ...                              the loss is NaN, its gradients are as they should be
    POISON=weights ...                             a weight is NaN after the step, loss and gradients were finite
    POISON_LEAVE=10                                besides, the process is told to leave after this step
"""

from __future__ import annotations

import os
import signal
from typing import Any


def install() -> None:
    """Put the poison where the environment asks for it."""
    if "POISON" not in os.environ or os.environ.get("RANK", "0") != os.environ["POISON_RANK"]:
        return
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from gaudi3_scale.step import module

    kind, steps = os.environ["POISON"], {int(step) for step in os.environ["POISON_STEPS"].split(",")}
    losses, done = module.losses, 0

    def stepped(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        nonlocal done
        done += 1
        if done == int(os.environ.get("POISON_LEAVE", 0)):
            os.kill(os.getpid(), signal.SIGTERM)
        if kind == "weights" and done in steps:
            with torch.no_grad():
                weight = optimizer.param_groups[0]["params"][0]
                getattr(weight, "to_local", lambda: weight)().view(-1)[0] = float("nan")

    def poisoned(*arguments: Any) -> Any:
        loss, extra = losses(*arguments)
        if done + 1 in steps and kind == "loss":
            loss = loss * float("nan")
        elif done + 1 in steps and kind == "report":
            loss = loss + float("nan")
        return loss, extra

    register_optimizer_step_post_hook(stepped)
    module.losses = poisoned
