"""Records the steps that the section `profile` names."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.internals import DUMP_MEMORY, RECORD_MEMORY
from gaudi3_scale.profiler import GaudiProfiler
from gaudi3_scale.status import Progress

FOLDER = "profile"


class ProfileCallback(pl.Callback):
    """Traces, and snapshots of the device's memory, of every rank; nothing is recorded or slowed down otherwise."""

    def __init__(
        self, config: Config, device: Device, progress: Progress, log: Callable[[str], None], rank: int
    ) -> None:
        """ConfigError where the device keeps no history of its memory and one is wanted."""
        self._settings, self._train = config.profile, config.train
        self._folder, self._rank = config.output_dir / FOLDER, rank
        self._device, self._progress, self._log = device, progress, log
        self._profiler: GaudiProfiler | None = None
        self._remembers = False
        self._seen = progress.step
        if self._settings.memory_steps and not device.keeps_memory_history:
            raise ConfigError(
                f"profile.memory_steps is {self._settings.memory_steps}, but torch keeps a history of allocations on "
                f"cuda alone, and the device is {device.type}: set it to 0, and look at profile.activities=[memory]."
            )

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A job that resumed after the first of these steps records from where it is."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._seen = self._progress.step
        self._begin(self._progress.step + 1)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the step, if the optimizer made one; it is the end of it."""
        if self._progress.step == self._seen:
            return
        self._seen = self._progress.step
        if self._profiler is not None:
            self._profiler.step()
        step = self._progress.step
        self._end(step)
        if step < self._train.max_steps:
            self._begin(step + 1)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The job may end before all steps are recorded."""
        self._write_trace()
        self._write_memory()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """What led to it is what one wants to see, unless there is no time."""
        if self._profiler is not None:
            self._profiler.__exit__(None, None, None)
        self._write_memory()

    def _begin(self, step: int) -> None:
        """Before this step: the profiler runs one step longer than it records, as its own start is in the first."""
        settings = self._settings
        first, last = settings.first_step, settings.first_step + settings.steps - 1
        if self._profiler is None and settings.steps and max(1, first - 1) <= step <= last:
            warmup = 1 if step < first else 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there is no step to warm up in
                self._profiler = GaudiProfiler(settings.activities, 0, warmup, last - step + 1 - warmup)
            self._profiler.__enter__()
        if settings.memory_steps and not self._remembers and self._in_memory_steps(step):
            self._remembers = True
            RECORD_MEMORY.get()()

    def _end(self, step: int) -> None:
        if self._profiler is not None and step >= self._settings.first_step + self._settings.steps - 1:
            self._write_trace()
        if self._remembers and not self._in_memory_steps(step + 1):
            self._write_memory()

    def _in_memory_steps(self, step: int) -> bool:
        first = self._settings.first_step
        return first <= step < first + self._settings.memory_steps

    def _write_trace(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        began = time.perf_counter()
        profiler.__exit__(None, None, None)
        if profiler.recorded_steps == 0:
            return
        path = self._folder / f"trace-{self._rank}.json.gz"
        self._try(path, lambda: profiler.export_chrome_trace(path))
        summary = self._folder / f"summary-{self._rank}.txt"
        self._try(summary, lambda: write_atomically(summary, profiler.summary() + "\n", durable=False))
        self._log(
            f"profiled {profiler.recorded_steps} step(s): {path} and {summary.name}, written in "
            f"{time.perf_counter() - began:.1f} s"
        )

    def _write_memory(self) -> None:
        if not self._remembers:
            return
        self._remembers = False
        path = self._folder / f"memory-{self._rank}.pickle"
        self._try(path, lambda: DUMP_MEMORY.get()(str(path)))
        RECORD_MEMORY.get()(enabled=None)
        self._log(f"history of the device's memory: {path}")

    def _try(self, path: Path, write: Callable[[], object]) -> None:
        """A trace that cannot be written is no reason to stop."""
        try:
            write()
        except Exception as error:  # of torch's exporter, besides that of the disk
            self._log(f"{path} cannot be written ({error}): training goes on without it")
