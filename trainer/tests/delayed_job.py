"""`gaudi3-train` whose processes are held up where and when the environment says, and write down for how long.

    DELAYS='[{"phase": "forward", "ranks": [2], "seconds": 0.5, "first": 5, "last": 30, "every": 1}]' DELAYED_IN=folder

Phases are forward, backward, data and save. Each process adds a line to `slept-RANK` for every delay, and to
`steps-RANK` when it begins a step.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

RANK = int(os.environ["RANK"])
FOLDER = Path(os.environ["DELAYED_IN"])
DELAYS = [each for each in json.loads(os.environ["DELAYS"]) if RANK in each["ranks"]]


def note(name: str, line: dict[str, Any]) -> None:
    """Add a line to a file of this rank."""
    with (FOLDER / f"{name}-{RANK}").open("a") as file:
        file.write(json.dumps(line) + "\n")


def wait(phase: str, step: int) -> None:
    """Be late, if it is time to."""
    for each in DELAYS:
        if (
            each["phase"] == phase
            and each["first"] <= step <= each["last"]
            and (step - each["first"]) % each["every"] == 0
        ):
            began = time.monotonic()
            time.sleep(each["seconds"])
            note("slept", {"phase": phase, "step": step, "seconds": time.monotonic() - began})


def install() -> None:
    """Put the delays where the environment asks for them."""
    from gaudi3_scale.callbacks.batch_callback import StageBatches
    from gaudi3_scale.checkpoint.saver import Saver
    from gaudi3_scale.integration.trainer import step_of
    from gaudi3_scale.step.module import LanguageModule

    compute, fetch, save = LanguageModule.training_step, StageBatches.__iter__, Saver.save

    def training_step(self: LanguageModule, batch: Any, index: int) -> Any:
        step = step_of(self.trainer) + 1
        note("steps", {"step": step, "time": time.time()})
        wait("forward", step)
        loss = compute(self, batch, index)
        loss.register_hook(lambda _: wait("backward", step))
        return loss

    def batches(self: StageBatches) -> Iterator[Any]:
        first = self._run.progress.step + 1
        for number, batch in enumerate(fetch(self)):
            wait("data", first + number)
            yield batch

    def saved(self: Saver, step: int, last: bool = False) -> None:
        wait("save", step)
        save(self, step, last)

    LanguageModule.training_step = training_step  # type: ignore[method-assign]
    StageBatches.__iter__ = batches  # type: ignore[method-assign]
    Saver.save = saved  # type: ignore[method-assign]


def main() -> NoReturn:
    """Be the command."""
    from gaudi3_scale.cli import main as command

    install()
    command()
    raise SystemExit


if __name__ == "__main__":
    main()
