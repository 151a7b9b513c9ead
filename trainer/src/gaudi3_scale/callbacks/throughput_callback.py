"""Tokens per second, MFU and goodput of a Trainer.

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
from torch import Tensor

from gaudi3_scale import own_script
from gaudi3_scale.callbacks.status_callback import Contributor, join
from gaudi3_scale.cost.running import Watch
from gaudi3_scale.run import Run
from gaudi3_scale.throughput.goodput import Goodput
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, EVALUATION, OTHER, Ledger, current, use
from gaudi3_scale.throughput.meter import Meter, Reading, meter_for


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
        """Log every `every` optimizer steps; keep the ledger of goodput in `directory`, where one is given, else in the
        folder of the job, if this is one.

        `tokens` gives the token ids of a batch, whose number counts and whose last dimension is the sequence. All
        processes are taken to train on equally many. Only a transformers model, the module's `model` or the module
        itself, has an MFU. Waiting for data is counted from the end of this callback's batch to the start of the next.
        """
        self._every = every
        self._directory = Path(directory) if directory is not None else own_script.directory()
        self._read: dict[str, Any] = {}
        self._tokens = tokens
        self._run: Run | None = None
        self._watch: Watch | None = None
        self._before: Ledger = current()
        self._metered = False
        self._saved = False
        self._counted = self._step = self._logged = 0
        self._measured: tuple[Reading, Goodput] | None = None

    @classmethod
    def of_job(cls, run: Run) -> ThroughputCallback:
        """For a run, which knows its tokens and accounts for its waits itself; it is read where the loss is."""
        made = cls()
        made._run = run
        return made

    @property
    def watch(self) -> Watch | None:
        """What measures the fit that is running."""
        return self._watch

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            join(trainer)

    def contribute(self) -> dict[str, Any]:
        """What was logged last."""
        return self._read

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the account; a resumed fit goes on with that of its predecessors."""
        if self._run is not None:
            self._watch = self._run.watch
            self._watch.meter.start(time.perf_counter())
            self._watch.ledger.switch(COMPUTE)
            return
        if self._directory is not None and trainer.is_global_zero:
            self._directory.mkdir(parents=True, exist_ok=True)
        self._step = self._logged = trainer.global_step
        self._counted, self._metered = 0, False
        self._before = current()
        ledger = use(Ledger())
        ledger.about = self._before.about
        self._watch = Watch(ledger, self._directory if trainer.is_global_zero else None, self._step)
        ledger.switch(DATA)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if self._run is None and self._watch is not None:
            self._note_save()
            self._watch.ledger.switch(COMPUTE)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the batch; log, if the optimizer made a step and it is one to log."""
        watch = self._watch
        assert watch is not None
        if self._run is not None:
            self._job_batch(self._run, batch_idx)
            return
        ids = self._tokens(batch)
        if not self._metered:
            watch.meter, _ = self._meter(trainer, pl_module, ids.shape[-1])
            self._metered = True
        self._counted += ids.numel() * trainer.world_size
        if trainer.global_step != self._step:  # else it accumulates
            self._step = trainer.global_step
            log = self._step - self._logged >= self._every
            if log:
                _wait_for(trainer.strategy.root_device)
            watch.meter.step(self._counted, time.perf_counter())
            self._counted = 0
            if log:
                self._logged = self._step
                for name, value in self._measure(watch).items():
                    if value is not None:
                        self.log(name, value)
        watch.ledger.switch(DATA)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._watch is not None:
            self._watch.ledger.switch(EVALUATION)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._watch is not None:
            self._watch.ledger.switch(COMPUTE)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Lightning saves a checkpoint, up to the next batch or the end of the training."""
        if self._watch is not None:
            self._saved = True
            self._watch.ledger.switch(CHECKPOINT)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert self._watch is not None
        self._note_save()
        self._watch.ledger.switch(OTHER)
        if self._run is None:
            self._watch.ledger.finished(trainer.global_step)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """What was saved is written down before the process ends."""
        super().on_exception(trainer, pl_module, exception)
        self._note_save()

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """The ledger that ran before goes on."""
        if self._watch is not None and self._run is None:
            use(self._before)
        self._watch = None

    def _note_save(self) -> None:
        """What follows a checkpoint in the account is lost if the process dies."""
        if self._saved and self._watch is not None:
            self._saved = False
            self._watch.ledger.append(self._step, force=True)

    def _job_batch(self, run: Run, batch_idx: int) -> None:
        if (batch_idx + 1) % run.plan.accumulation:
            return
        progress, watch = run.progress, run.watch
        self._step = progress.step
        watch.meter.step(progress.samples_per_step * progress.tokens_per_sample, time.perf_counter())
        if run.is_logged(batch_idx):
            # The loss has waited for the device, so that this is when the step has ended; now it is reporting.
            with watch.ledger.during(OTHER):
                self._measure(watch)
                for name, value in self._read.items():
                    setattr(progress, name, value)
                run.measured = self._measured

    def _meter(self, trainer: pl.Trainer, module: pl.LightningModule, length: int) -> tuple[Meter, str | None]:
        model = getattr(module, "model", module)
        return meter_for(model, trainer.strategy.root_device, str(trainer.precision), length, trainer.world_size)

    def _measure(self, watch: Watch) -> dict[str, float | None]:
        """Read the meter, and begin its next window."""
        self._measured = reading, goodput = watch.read(time.perf_counter()), watch.goodput()
        values = {
            "tokens_per_second": reading.tokens_per_second,
            "tokens_per_second_stepping": reading.tokens_per_second_stepping,
            "mfu": reading.mfu,
            "hfu": reading.hfu,
            "goodput": goodput.ratio,
        }
        shown = ("tokens_per_second", "tokens_per_second_stepping", "mfu")
        self._read = {**{name: values[name] for name in shown}, "goodput": goodput.status()}
        watch.ledger.append(self._step)
        return values


def _wait_for(device: torch.device) -> None:
    """Until it has done what it was given: a step has ended when its work has."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()
