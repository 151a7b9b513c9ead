"""Tokens per second, MFU and goodput in a Trainer of one's own.

    Trainer(callbacks=[ThroughputCallback(directory="runs/one")], ...)

logs `tokens_per_second`, `tokens_per_second_stepping`, `goodput` and, where the device's peak is known, `mfu` and `hfu`
every few steps through `self.log`; `gaudi3-train goodput runs/one` shows where the time went, over all restarts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.profilers import Profiler
from torch import Tensor

from gaudi3_scale import job
from gaudi3_scale.callbacks.status import Contributor, join
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, EVALUATION, OTHER, Ledger, current, use
from gaudi3_scale.throughput.meter import Meter, meter_for
from gaudi3_scale.throughput.watch import Watch


def input_tokens(batch: Any) -> Tensor:
    """The token ids of a batch, of shape (B, T): the batch itself, its `input_ids`, or its first item.

    Padding counts: it is computed like any token. Raises TypeError for a batch of another form.
    """
    if isinstance(batch, Tensor):
        return batch
    if hasattr(batch, "keys") and "input_ids" in batch:
        return input_tokens(batch["input_ids"])
    if isinstance(batch, tuple | list) and batch:
        return input_tokens(batch[0])
    raise TypeError(
        f"ThroughputCallback cannot find token ids in a batch of type {type(batch).__name__}: give it tokens=, a "
        "function from a batch to a tensor of them."
    )


class ThroughputCallback(Contributor, pl.Callback):
    """Measures the fit of the Trainer it is given to."""

    def __init__(
        self,
        every: int = 10,
        directory: str | Path | None = None,
        tokens: Callable[[Any], Tensor] = input_tokens,
    ) -> None:
        """Log every so many optimizer steps; keep the ledger of goodput in `directory`, where one is given, else in the
        folder of the job, if this is one.

        `tokens` gives the token ids of a batch, whose number counts and whose last dimension is the sequence. All
        processes are taken to train on equally many. Only a transformers model, the module's `model` or the module
        itself, has an MFU.
        """
        self._every = every
        self._directory = Path(directory) if directory is not None else job.directory()
        self._read: dict[str, Any] = {}
        self._tokens = tokens
        self._watch: Watch | None = None
        self._before: Ledger = current()
        self._metered = False
        self._counted = self._step = self._logged = 0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """A job is told of its speed."""
        if stage == "fit":
            join(trainer)

    def contribute(self) -> dict[str, Any]:
        """What was logged last."""
        return self._read

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the account; a resumed fit goes on with that of its predecessors."""
        if self._directory is not None and trainer.is_global_zero:
            self._directory.mkdir(parents=True, exist_ok=True)
        self._step = self._logged = trainer.global_step
        self._counted, self._metered = 0, False
        self._before, ledger = current(), use(Ledger())
        self._watch = Watch(ledger, self._directory if trainer.is_global_zero else None, self._step)
        trainer.profiler = _Fetches(trainer.profiler, ledger)
        trainer.save_checkpoint = _Saves(trainer, ledger)
        ledger.switch(COMPUTE)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the batch; log, if the optimizer made a step and it is one to log."""
        watch = self._watch
        assert watch is not None
        ids = self._tokens(batch)
        if not self._metered:
            watch.meter, _ = self._meter(trainer, pl_module, ids.shape[-1])
            self._metered = True
        self._counted += ids.numel() * trainer.world_size
        if trainer.global_step == self._step:
            return  # accumulates
        self._step = trainer.global_step
        log = self._step - self._logged >= self._every
        if log:
            _wait_for(trainer.strategy.root_device)
        watch.meter.step(self._counted, time.perf_counter())
        self._counted = 0
        if log:
            self._logged = self._step
            self._log(watch)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Evaluation begins."""
        if self._watch is not None:
            self._watch.ledger.switch(EVALUATION)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Evaluation is over."""
        if self._watch is not None:
            self._watch.ledger.switch(COMPUTE)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Close the account."""
        assert self._watch is not None
        self._watch.ledger.switch(OTHER)
        self._watch.ledger.finished(trainer.global_step)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Leave the trainer as it was."""
        if self._watch is not None:
            self._watch = None
            use(self._before)
            if isinstance(trainer.profiler, _Fetches):
                trainer.profiler = trainer.profiler.inner
            vars(trainer).pop("save_checkpoint", None)

    def _meter(self, trainer: pl.Trainer, module: pl.LightningModule, length: int) -> tuple[Meter, str | None]:
        model = getattr(module, "model", module)
        return meter_for(model, trainer.strategy.root_device, str(trainer.precision), length, trainer.world_size)

    def _log(self, watch: Watch) -> None:
        reading, goodput = watch.read(time.perf_counter()), watch.goodput()
        values = {
            "tokens_per_second": reading.tokens_per_second,
            "tokens_per_second_stepping": reading.tokens_per_second_stepping,
            "mfu": reading.mfu,
            "hfu": reading.hfu,
            "goodput": goodput.ratio,
        }
        told = ("tokens_per_second", "tokens_per_second_stepping", "mfu")
        self._read = {**{name: values[name] for name in told}, "goodput": goodput.status()}
        for name, value in values.items():
            if value is not None:
                self.log(name, value)
        watch.ledger.append(self._step)


class _Fetches(Profiler):
    """Tells a ledger of the waits for data; all else is the trainer's own profiler's."""

    def __init__(self, inner: Profiler, ledger: Ledger) -> None:
        super().__init__(dirpath=inner.dirpath, filename=inner.filename)
        self.inner = inner
        self._switch = ledger.switch
        self._part = COMPUTE

    def start(self, action_name: str) -> None:
        """An action begins."""
        self.inner.start(action_name)
        if action_name.endswith(".train_dataloader_next"):
            self._part = self._switch(DATA)

    def stop(self, action_name: str) -> None:
        """An action ends."""
        if action_name.endswith(".train_dataloader_next"):
            self._switch(self._part)
        self.inner.stop(action_name)

    def summary(self) -> str:
        """The trainer's own."""
        text: str = self.inner.summary()
        return text

    def describe(self) -> None:
        """The trainer's own."""
        self.inner.describe()

    def teardown(self, stage: str | None) -> None:
        """The trainer's own."""
        self.inner.teardown(stage)


class _Saves:
    """`Trainer.save_checkpoint`, accounted for."""

    def __init__(self, trainer: pl.Trainer, ledger: Ledger) -> None:
        self._save, self._trainer, self._ledger = trainer.save_checkpoint, trainer, ledger

    def __call__(self, *arguments: Any, **more: Any) -> None:
        with self._ledger.during(CHECKPOINT):
            self._save(*arguments, **more)
        self._ledger.append(self._trainer.global_step, force=True)


def _wait_for(device: torch.device) -> None:
    """Until it has done what it was given: a step has ended when its work has."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()
