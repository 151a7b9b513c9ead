"""Hands the trackers what a job logs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import lightning.pytorch as pl

from gaudi3_scale.config import Config
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.interruption.notices import Interrupted
from gaudi3_scale.status import Progress
from gaudi3_scale.tracking.queue import TrackerQueue
from gaudi3_scale.tracking.trackers import KINDS, NAMES, Ending, check, load

if TYPE_CHECKING:
    from gaudi3_scale.step.module import LanguageModule

HURRIED_SECONDS = 2.0
"""That all trackers together have when the job has to leave or failed."""
LARGEST_EXPONENT = 700.0
"""A perplexity beyond this is no number."""


class TrackingCallback(pl.Callback):
    """Tells the trackers of each logged step; after the callback that reads the loss, and on rank 0 alone."""

    def __init__(self, config: Config, progress: Progress, log: Callable[[str], None]) -> None:
        self._config, self._progress, self._log = config, progress, log
        self._queues: list[TrackerQueue] = []
        self._seen = progress.step

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The trackers are opened in threads, while training begins: a server may take its time."""
        settings, directory = self._config.tracking, self._config.output_dir
        self._seen = self._progress.step
        values = parameters(self._config, self._progress)
        for name in settings.trackers:
            try:
                load(name)
            except Exception as error:  # a library that is installed may still be broken
                self._log(f"{NAMES[name]} cannot be loaded ({error}): training goes on without it")
                continue
            tracker = KINDS[name](directory, settings, self._progress.step)
            self._queues.append(TrackerQueue(NAMES[name], tracker, values, self._log))

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Hand over what was just logged."""
        train, step = self._config.train, self._progress.step
        if step == self._seen:  # the optimizer has made none
            return
        self._seen = step
        if not train.is_log_step(step):
            return
        values = logged(self._progress, float(cast("LanguageModule", pl_module).learning_rate))
        for queue in self._queues:
            queue.offer(step, values)

    def evaluated(self) -> None:
        """Hand over the result of an evaluation, with its perplexity."""
        loss = self._progress.validation_loss
        if loss is not None and math.isfinite(loss):
            figures = self._progress.validation_figures
            values = {"validation_loss": loss, **{f"validation_{name}": value for name, value in figures.items()}}
            if not figures:  # the loss of pairs is none of tokens
                values["validation_perplexity"] = math.exp(min(loss, LARGEST_EXPONENT))
            for queue in self._queues:
                queue.offer(self._progress.step, values)

    def finish(self) -> None:
        """The job has its last result; its training ended before."""
        self._end("finished", self._config.tracking.seconds)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """The training ends early."""
        self.give_up(exception)

    def give_up(self, error: BaseException) -> None:
        """The job ends early. An interrupted run is not over: the next process goes on with it."""
        self._end(
            "interrupted" if isinstance(error, Interrupted) else "failed",
            min(HURRIED_SECONDS, self._config.tracking.seconds),
        )

    def _end(self, ending: Ending, seconds: float) -> None:
        queues, self._queues = self._queues, []
        for queue in queues:
            queue.end(ending)
        deadline = time.monotonic() + seconds
        for queue in queues:
            queue.wait(deadline)


def observers(
    config: Config, device: Device, progress: Progress, log: Callable[[str], None], rank: int
) -> list[pl.Callback]:
    """What the sections `tracking` and `profile` ask for; ConfigError where it is not available."""
    check(config.tracking)
    found: list[pl.Callback] = []
    if config.tracking.trackers and rank == 0:
        found.append(TrackingCallback(config, progress, log))
    if config.profile.steps or config.profile.memory_steps:
        from gaudi3_scale.callbacks.profile_callback import ProfileCallback

        found.append(ProfileCallback(config, device, progress, log, rank))
    return found


def logged(progress: Progress, learning_rate: float) -> dict[str, float]:
    """The values of a logged step, as far as they are known and finite."""
    values: dict[str, Any] = {
        "loss": progress.loss,
        **progress.figures,
        "gradient_norm": progress.gradient_norm,
        "learning_rate": learning_rate,
        "tokens": progress.tokens,
        "tokens_per_second": progress.tokens_per_second,
        "mfu": progress.mfu,
        "goodput": (progress.goodput or {}).get("ratio"),
        "cost": (progress.cost or {}).get("spent"),
    }
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def parameters(config: Config, progress: Progress) -> dict[str, Any]:
    """The job's settings by dotted key, and what it runs on; without those of the trackers."""
    values = _flat(config.model_dump(mode="json", exclude={"tracking"}), "")
    device = {"world_size": progress.world_size, "hardware": progress.device_label}
    return {**values, **device, "samples_per_step": progress.samples_per_step}


def _flat(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
