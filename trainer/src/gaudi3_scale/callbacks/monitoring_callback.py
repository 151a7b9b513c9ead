"""Anomalies of a Trainer's speed and memory, each in a sentence.

    Trainer(callbacks=[MonitoringCallback(directory="runs/one")], ...)

prints what it finds and appends it to `anomalies.jsonl`; see `gaudi3_scale.monitoring` for the kinds. It also compares
what the ranks need for each step, for the ledger of a ThroughputCallback: `gaudi3-train goodput --what-if` reads it.
"""

from __future__ import annotations

import gc
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

from gaudi3_scale import own_script
from gaudi3_scale.callbacks.gaudi_checkpoint import GaudiCheckpoint
from gaudi3_scale.callbacks.status_callback import Contributor, join
from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback
from gaudi3_scale.config.monitoring import MonitoringConfig
from gaudi3_scale.distributed.exchange import all_gather
from gaudi3_scale.files import Outage, write_atomically
from gaudi3_scale.hpu import device as devices
from gaudi3_scale.monitoring.actions import Actions, Knob, sentence
from gaudi3_scale.monitoring.anomaly import Anomaly
from gaudi3_scale.monitoring.clock import ForwardClock
from gaudi3_scale.monitoring.fleet import RankReading, combine, gather, noticed
from gaudi3_scale.monitoring.monitor import PerformanceMonitor
from gaudi3_scale.run import Run
from gaudi3_scale.secret import proven_group
from gaudi3_scale.throughput import step_clock
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, EVALUATION, OTHER, Ledger, current, use
from gaudi3_scale.throughput.rank_times import FILE as RANKS_FILE
from gaudi3_scale.throughput.rank_times import RankTimes
from gaudi3_scale.throughput.step_clock import COLUMNS, StepClock

FILE = "anomalies.jsonl"
MOST_AHEAD = 64


class MonitoringCallback(Contributor, pl.Callback):
    """Reads the fit of the Trainer it is given to every few steps, at the same steps on all ranks.

    >>> callback = MonitoringCallback(every=10, step_time=0.2, actions=["checkpoint"])
    >>> callback.anomalies
    []
    """

    def __init__(
        self,
        every: int = 10,
        directory: str | Path | None = None,
        compilations: Callable[[], int] | None = None,
        **settings: Any,
    ) -> None:
        """Wait for the device and look every `every` optimizer steps.

        `anomalies.jsonl` goes into `directory`, where none is given into the folder of the job or the trainer's
        `default_root_dir`. `compilations` counts them; by default distinct shapes of inputs are counted on an HPU.
        `settings` are those of the section `monitoring` of `gaudi3-train config`; the action prefetch is of jobs only.
        """
        self._every = every
        self._directory = Path(directory) if directory is not None else own_script.directory()
        self._compilations = compilations
        self._config = MonitoringConfig(**settings)
        self.anomalies: list[Anomaly] = []
        """Those of this process's fit; the same on all ranks."""
        self._run: Run | None = None
        self._monitor = PerformanceMonitor(**settings)
        self._actions = Actions(())
        self._clock: ForwardClock | None = None
        self._steps: StepClock | None = None
        self._times = RankTimes(0)
        self._before: Ledger | None = None
        self._outage = Outage()
        self._path: Path | None = None
        self._group: Any = None
        self._shapes: set[Any] = set()
        self._counts_shapes = False
        self._spent: dict[str, int] | None = None
        self._step = self._read = self._compared = 0
        self._waited = 0.0

    @classmethod
    def of_job(cls, run: Run) -> MonitoringCallback:
        """For a run, which measures its waits and reads the loss itself."""
        made = cls(run.config.train.log_every, run.config.output_dir, **run.config.monitoring.model_dump())
        made._run, made._outage = run, run.outage
        return made

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Report the job's anomalies."""
        if stage == "fit" and self._run is None:
            join(trainer)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Ranks meet; the first step begins. Collective."""
        run, device = self._run, trainer.strategy.root_device
        self._clock = ForwardClock(device)
        if run is not None:
            self._group, writes = run.process_group.control, run.process_group.writer
            compiles = run.device.compile_backend(run.config.train.mode) is not None
        else:
            compiles = False
            if not any(isinstance(each, ThroughputCallback) for each in trainer.callbacks):  # which has one
                self._before = current()
                use(Ledger()).switch(DATA)
            self._group = proven_group() if trainer.world_size > 1 else None
            writes = trainer.is_global_zero
        host = socket.gethostname()
        hosts = all_gather(host, self._group) if self._group is not None else []
        limit = devices.memory_size(device)
        self._monitor = PerformanceMonitor(limit, hosts, **self._config.model_dump())
        self._actions = self._allowed(trainer, device)
        self._counts_shapes = compiles or devices.compiles_shapes(device)
        self._path = (self._directory or Path(trainer.default_root_dir)) / FILE if writes else None
        self._step = self._read = self._compared = self._now(trainer)
        self._spent = self._steps = None
        self._times = RankTimes(trainer.global_rank, hosts)
        if run is not None:
            self._begin(trainer)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """The batch is here."""
        assert self._clock is not None
        self._switch(COMPUTE)
        if self._steps is None:  # by now, whoever keeps the ledger has begun it
            self._begin(trainer)
        known = len(self._shapes)
        if self._counts_shapes:
            self._shapes.add(_shape(batch))
        assert self._steps is not None
        self._steps.begun(len(self._shapes) > known)
        self._clock.start()

    def on_before_backward(self, trainer: pl.Trainer, pl_module: pl.LightningModule, loss: Any) -> None:
        """The forward pass is over."""
        if self._clock is not None:
            self._clock.stop()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look, if it is time to. Collective then."""
        run = self._run
        assert self._steps is not None
        if run is not None:
            if (batch_idx + 1) % run.plan.accumulation == 0:
                self._steps.ended()
            if run.is_logged(batch_idx):
                self._waited = run.read_seconds
                with run.ledger.during(OTHER):
                    self._look(trainer)
            return
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            self._steps.ended()
        if self._step - self._read >= self._every:
            began = time.perf_counter()
            with current().during(COMPUTE):
                _wait_for(trainer.strategy.root_device)
            self._waited = time.perf_counter() - began
            with current().during(OTHER):
                self._look(trainer)
        self._switch(DATA)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Evaluation begins."""
        self._switch(EVALUATION)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Evaluation is over."""
        self._switch(COMPUTE)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Lightning saves, up to the next batch."""
        self._switch(CHECKPOINT)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """The ledger that ran before goes on."""
        step_clock.use(None)
        if self._before is not None:
            use(self._before)
            self._before = None

    def contribute(self) -> dict[str, Any]:
        """For status.json."""
        return {"anomaly": _status(self.anomalies[-1]) if self.anomalies else None}

    def _look(self, trainer: pl.Trainer) -> None:
        """Measure, share, judge, say. The same comes out on all ranks."""
        assert self._clock is not None and self._steps is not None
        step, spent = self._now(trainer), current().nanoseconds()
        before, self._spent = self._spent, spent
        steps, self._read = step - self._read, step
        if before is None or steps <= 0:  # the first steps compile, and what was before them is in the account
            return
        took = {part: (spent[part] - before[part]) / 1e9 for part in spent}
        seconds = (took[COMPUTE] + took[DATA]) / steps
        mine = RankReading(
            seconds=seconds,
            data_wait=noticed(took[DATA] / steps, self._waited, seconds),
            own=self._clock.read(),
            memory=devices.memory_in_use(trainer.strategy.root_device),
            shapes=self._compilations() if self._compilations is not None else len(self._shapes),
            disturbed=float(took[CHECKPOINT] > 0 or took[EVALUATION] > 0),
        )
        numbers, on_steps = self._steps.read()
        ranks, times = gather(mine, self._group, numbers)
        if self._path is not None:
            self._times.add(self._compared, step, times.reshape(len(ranks), -1, len(COLUMNS)), on_steps)
        self._compared = step
        reading = combine(step, ranks)
        lines = self._actions.watch(reading)
        self._tell(trainer, lines)
        for anomaly in self._monitor.watch(reading):
            self.anomalies.append(anomaly)
            self._found(trainer, anomaly)
            self._tell(trainer, self._actions.take(anomaly))

    def _begin(self, trainer: pl.Trainer) -> None:
        """The clock of the steps starts; the lines of the ledger say what comes of it."""
        ledger = current()
        self._steps = StepClock(ledger, self._every, trainer.world_size == 1, trainer.strategy.root_device)
        step_clock.use(self._steps)
        if self._path is not None:
            ledger.more = self._line

    def _line(self) -> dict[str, Any]:
        """For the next line of the ledger."""
        found, ranks = self._times.take(), self._times.ranks()
        if found and len(ranks) > 1:
            assert self._path is not None
            path, text = self._path.with_name(RANKS_FILE), json.dumps({"step": self._compared, "ranks": ranks}) + "\n"
            self._outage.attempt(path, lambda: write_atomically(path, text))
        return found

    def _found(self, trainer: pl.Trainer, anomaly: Anomaly) -> None:
        self._log(trainer, f"anomaly at step {anomaly.step}: {anomaly.sentence}")
        self._write(anomaly.record())
        if self._run is not None:
            self._run.progress.anomaly = _status(anomaly)
            if self._run.metrics is not None and self._run.rank == 0:
                self._run.metrics.anomalies.labels(anomaly.kind).inc()

    def _tell(self, trainer: pl.Trainer, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self._log(trainer, f"action at step {line['step']}: {sentence(line)}")
            self._write(line)

    def _log(self, trainer: pl.Trainer, text: str) -> None:
        if trainer.is_global_zero:
            if self._run is not None:
                self._run.console.log(text)
            else:
                print(text, flush=True)

    def _write(self, line: dict[str, Any]) -> None:
        """One line by one write; those of earlier processes stay, also of steps that are made again."""
        if self._path is not None:
            self._outage.append(self._path, json.dumps(line | {"time": time.time()}) + "\n")

    def _switch(self, part: str) -> None:
        """In the ledger, if nobody else keeps it."""
        if self._before is not None:
            current().switch(part)

    def _now(self, trainer: pl.Trainer) -> int:
        return self._run.progress.step if self._run is not None else trainer.global_step

    def _allowed(self, trainer: pl.Trainer, device: torch.device) -> Actions:
        loader = trainer.train_dataloader if self._run is not None else None
        knob = Knob(lambda: loader.ahead, loader.resize, MOST_AHEAD) if loader is not None else None
        saver = next((each for each in trainer.callbacks if isinstance(each, GaudiCheckpoint)), None)

        def free() -> tuple[int, int]:
            before = devices.memory_in_use(device)
            gc.collect()
            devices.empty_cache(device)
            return before, devices.memory_in_use(device)

        return Actions(self._config.actions, knob, free, saver.request if saver is not None else None)


def _status(anomaly: Anomaly) -> dict[str, Any]:
    return {"kind": anomaly.kind, "step": anomaly.step, "severity": anomaly.severity, "what": anomaly.sentence}


def _shape(batch: Any) -> Any:
    """The shapes of the tensors of a batch; what is none has no shape."""
    if isinstance(batch, torch.Tensor):
        return tuple(batch.shape)
    if hasattr(batch, "items"):
        return tuple((name, _shape(value)) for name, value in batch.items())
    return tuple(_shape(value) for value in batch) if isinstance(batch, list | tuple) else None


def _wait_for(device: torch.device) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()
