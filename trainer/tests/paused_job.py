"""Stops a worker in a named phase of a named step until the test has done to it what it wants.

Set by environment variables, and installed by the tests' own entry point: nothing of it is in the package. A worker
that has come to its phase writes `paused-RANK` into the folder, and goes on when `go` is there.

    PAUSE_IN=folder PAUSE_PHASE=backward PAUSE_STEP=6 PAUSE_RANKS=0,1
    PAUSE_EACH=0.05                     every forward pass takes these seconds longer, on every rank
    PAUSE_AT=60 PAUSE_UNTIL=file        no rank begins a step after the 60th before the file is there
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PHASES = ("data", "forward", "backward", "optimizer", "evaluation", "warm-up", "save", "upload")


def install() -> None:
    """Put the pause where the environment asks for it."""
    if "PAUSE_EACH" in os.environ:
        _each(float(os.environ["PAUSE_EACH"]))
    if "PAUSE_AT" in os.environ:
        _at(int(os.environ["PAUSE_AT"]), Path(os.environ["PAUSE_UNTIL"]))
    if "PAUSE_IN" in os.environ and os.environ["RANK"] in os.environ["PAUSE_RANKS"].split(","):
        phase, step = os.environ["PAUSE_PHASE"], int(os.environ["PAUSE_STEP"])
        _INSTALL[phase](Pause(Path(os.environ["PAUSE_IN"]), os.environ["RANK"], step))


class Pause:
    """Once, in one step."""

    def __init__(self, folder: Path, rank: str, step: int) -> None:
        self.folder = folder
        self.rank = rank
        self.step = step
        self.done = 0
        """Optimizer steps this process has made."""
        self._paused = False

    def here(self, due: bool) -> None:
        """Wait here, if it is time."""
        if not due or self._paused:
            return
        self._paused = True
        (self.folder / f"paused-{self.rank}").touch()
        _wait_for(self.folder / "go")

    def count_steps(self) -> None:
        """Have `done` counted."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        def count(*_: Any) -> None:
            self.done += 1

        register_optimizer_step_post_hook(count)


def _wait_for(file: Path) -> None:
    end = time.monotonic() + 120
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)


def _at(step: int, file: Path) -> None:
    from gaudi3_scale.step.module import LanguageModule

    original = LanguageModule.training_step

    def held(self: LanguageModule, *args: Any) -> Any:
        if self.trainer.global_step >= step:
            _wait_for(file)
        return original(self, *args)

    LanguageModule.training_step = held  # type: ignore[method-assign]


def _each(seconds: float) -> None:
    from gaudi3_scale.step.module import LanguageModule

    original = LanguageModule.training_step

    def slow(self: LanguageModule, *args: Any) -> Any:
        time.sleep(seconds)
        return original(self, *args)

    LanguageModule.training_step = slow  # type: ignore[method-assign]


def _data(pause: Pause) -> None:
    from gaudi3_scale.data import RankBatches

    original = RankBatches.__iter__

    def paused(self: RankBatches) -> Iterator[Any]:
        for batch in original(self):
            pause.here(pause.done == pause.step - 1)
            yield batch

    pause.count_steps()
    RankBatches.__iter__ = paused  # type: ignore[method-assign]


def _forward(pause: Pause) -> None:
    from gaudi3_scale.step.module import LanguageModule

    original = LanguageModule.training_step

    def paused(self: LanguageModule, *args: Any) -> Any:
        loss = original(self, *args)
        pause.here(pause.done == pause.step - 1)
        return loss

    pause.count_steps()
    LanguageModule.training_step = paused  # type: ignore[method-assign]


def _backward(pause: Pause) -> None:
    from gaudi3_scale.step.module import LanguageModule

    original = LanguageModule.training_step

    def paused(self: LanguageModule, *args: Any) -> Any:
        loss = original(self, *args)
        loss.register_hook(lambda gradient: pause.here(pause.done == pause.step - 1))
        return loss

    pause.count_steps()
    LanguageModule.training_step = paused  # type: ignore[method-assign]


def _optimizer(pause: Pause) -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    pause.count_steps()
    register_optimizer_step_pre_hook(lambda *_: pause.here(pause.done == pause.step - 1))


def _evaluation(pause: Pause) -> None:
    from gaudi3_scale.step import validation

    original = validation.sample_loss

    def paused(*args: Any) -> Any:
        loss = original(*args)
        pause.here(pause.done >= pause.step)
        return loss

    pause.count_steps()
    validation.sample_loss = paused


def _warm_up(pause: Pause) -> None:
    from gaudi3_scale.callbacks.warm_up_callback import WarmUpCallback

    original = WarmUpCallback.on_train_start

    def paused(self: WarmUpCallback, *args: Any) -> None:
        pause.here(True)
        original(self, *args)

    WarmUpCallback.on_train_start = paused  # type: ignore[method-assign]


def _save(pause: Pause) -> None:
    from gaudi3_scale.checkpoint import CheckpointStore

    original = CheckpointStore.commit

    def paused(self: CheckpointStore, building: Path, manifest: Any) -> Any:
        pause.here(manifest.step == pause.step)
        return original(self, building, manifest)

    CheckpointStore.commit = paused  # type: ignore[method-assign]


def _upload(pause: Pause) -> None:
    from gaudi3_scale.checkpoint.saver import Saver
    from gaudi3_scale.checkpoint.target import DirectoryTarget

    original, original_save = DirectoryTarget.put, Saver.save

    def save(self: Saver, step: int, last: bool = False) -> None:
        if step == pause.step:
            self.close(None)  # an uploader that is busy with another checkpoint would leave this one out
        original_save(self, step, last)

    def paused(self: DirectoryTarget, path: Path, name: str) -> None:
        original(self, path, name)
        pause.here(name.startswith(f"step-{pause.step:08d}"))  # one file is there, others are not

    DirectoryTarget.put = paused  # type: ignore[method-assign]
    Saver.save = save  # type: ignore[method-assign]


_INSTALL = {
    "data": _data,
    "forward": _forward,
    "backward": _backward,
    "optimizer": _optimizer,
    "evaluation": _evaluation,
    "warm-up": _warm_up,
    "save": _save,
    "upload": _upload,
}
