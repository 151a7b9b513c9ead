"""What a job says of itself in files: status.json for whoever watches, metrics.jsonl for whoever plots."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gaudi3_doctor.job_status import FILE as FILE
from gaudi3_doctor.job_status import JobStatus as JobStatus
from gaudi3_doctor.job_status import StatusError, read
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.files import Outage, overwrite, write_atomically

SCHEMA = 1


LAST_HANG = "GAUDI3_LAST_HANG"
"""A variable: what the launcher found of the hang for which it started its processes again, as JSON."""


def last_hang() -> dict[str, Any] | None:
    """What the launcher found; None where these are its first processes."""
    try:
        found = json.loads(os.environ.get(LAST_HANG, "null"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def invocation() -> dict[str, str]:
    """What systemd calls this run of the job's unit, for the status; nothing outside of a unit."""
    run = os.environ.get("INVOCATION_ID")
    return {"invocation": run} if run else {}


State = Literal["starting", "running", "finished", "failed", "interrupted"]


@dataclass
class Progress:
    """How far the job is. Every rank has it; the numbers are the job's, not the rank's."""

    max_steps: int
    world_size: int
    device: str
    tokens_per_sample: int
    samples_per_step: int
    hardware_name: str | None = None
    simulated: bool | None = None
    """Whether the device only stands for a card; None until it is known."""
    software: dict[str, str] | None = None
    """Versions of python, torch, lightning and, on a card, of the vendor's plugin."""
    precision: str | None = None
    """That the job computes in, never auto; None until the device is known."""
    precision_words: str = ""
    """The same, and whence it is, for readers."""
    weights: str | None = None
    """What training began from: folder or random; None until it is known."""
    unit: str = "byte"
    """What the loss is per: byte, token or pair."""
    step: int = 0
    samples: int = 0
    loss: float | None = None
    first_loss: float | None = None
    logged_step: int = -1
    """The newest step after which the loss was read."""
    mean_loss: float | None = None
    """Since the read before; None if all steps were skipped."""
    learning_rate: float | None = None
    """That the newest step was made with."""
    figures: dict[str, float] = field(default_factory=dict)
    """What an objective reports beside its loss, over the same steps as `mean_loss`: of pairs, under trl's names."""
    gradient_norm: float | None = None
    skipped_steps: int = 0
    validation_loss: float | None = None
    validation_figures: dict[str, float] = field(default_factory=dict)
    baseline_loss: float | None = None
    tokens_per_second: float | None = None
    tokens_per_second_stepping: float | None = None
    mfu: float | None = None
    goodput: dict[str, Any] | None = None
    cost: dict[str, Any] | None = None
    """Money so far; None where no price is given."""
    anomaly: dict[str, Any] | None = None
    """The last one since this process was started."""
    peak_memory_bytes: int | None = None
    """Of this process's device, once training has ended; None on CPU."""
    batch: dict[str, Any] | None = None
    """How micro_batch_size auto was resolved; None where it was given."""
    checkpoint: Path | str | None = None
    checkpoint_step: int | None = None
    checkpoint_error: str | None = None
    uploaded_step: int | None = None
    upload_error: str | None = None
    resumed_from_step: int | None = None
    interruption: str | None = None
    hang: dict[str, Any] | None = field(default_factory=last_hang)
    """Who held up the processes that these ones follow."""
    started_at: float = field(default_factory=time.time)

    @property
    def tokens(self) -> int:
        """Tokens (bytes where the tokenizer is bytes) learnt from since the job's beginning."""
        return self.samples * self.tokens_per_sample

    @property
    def baseline_words(self) -> str:
        """What the loss is compared with, for readers."""
        what = "no-preference" if self.unit == "pair" else f"{self.unit}-frequency"
        return f"{what} baseline {self.baseline_loss:.3f} nats/{self.unit}"

    @property
    def device_label(self) -> str:
        """The device for readers: GAUDI3, simulated hpu, cpu."""
        return self.hardware_name or ("simulated " if self.simulated else "") + self.device

    def runs_on(self, device: str, hardware_name: str | None, simulated: bool, software: dict[str, str]) -> None:
        """The job has its device."""
        self.device, self.hardware_name, self.simulated, self.software = device, hardware_name, simulated, software

    def advance(self) -> int:
        """Count one optimizer step."""
        self.step += 1
        self.samples += self.samples_per_step
        return self.step


SHOWN = (
    "step", "max_steps", "loss", "first_loss", "gradient_norm", "skipped_steps", "validation_loss",
    "baseline_loss", "tokens_per_second", "tokens_per_second_stepping", "mfu", "goodput", "cost", "anomaly",
    "peak_memory_bytes", "batch", "tokens", "world_size", "device", "hardware_name", "simulated", "software",
    "precision", "weights", "checkpoint", "checkpoint_step", "checkpoint_error", "uploaded_step", "upload_error",
    "resumed_from_step", "interruption", "hang", "started_at",
)  # fmt: skip
"""What of the progress is in status.json, in this order."""


def read_status(folder: Path) -> JobStatus:
    """status.json of a job's folder; empty where there is none, TrainerError where it is not to be used."""
    try:
        return read(folder / FILE)
    except StatusError as error:
        raise TrainerError(str(error)) from None


class StatusFile:
    """status.json of one node. Writing it never raises OSError."""

    def __init__(self, path: Path, outage: Outage | None = None) -> None:
        self.path = path
        self._outage = outage or Outage()

    @property
    def failures(self) -> int:
        """Writes that failed, of this file and of others with the same `Outage`."""
        return self._outage.failures

    def read(self) -> JobStatus:
        """What it says; empty if there is none, or one that the job will replace, as it is torn or not of a job."""
        try:
            return read(self.path)
        except StatusError:
            return {}

    def finished(self, max_steps: int) -> bool:
        """Did this node see the job end, at no fewer steps than are wanted now?"""
        status = self.read()
        return bool(status.get("state") == "finished" and (status.get("step") or 0) >= max_steps)

    def write(self, state: State, progress: Progress, error: str | None = None, **others: Any) -> None:
        """Replace it; every change of state is made durable. `others` override what `progress` has."""
        status = {
            "schema": SCHEMA,
            "state": state,
            **{name: getattr(progress, name) for name in SHOWN},
            "checkpoint": str(progress.checkpoint) if progress.checkpoint else None,
            "updated_at": time.time(),
            **invocation(),
            "error": error,
            **others,
        }
        self._outage.attempt(self.path, lambda: self._replace(state, _json(status)))

    def _replace(self, state: State, text: str) -> None:
        try:
            write_atomically(self.path, text, durable=state != "running")
        except OSError:
            if state in ("starting", "running"):
                raise
            overwrite(self.path, text)  # how a job ended is worth the risk of a torn file


class MetricsFile:
    """metrics.jsonl of one node: one line per logged step, however often the job was resumed.

    Lines that cannot be written are kept, and written as soon as anything can be.
    """

    def __init__(self, path: Path, outage: Outage | None = None) -> None:
        self.path = path
        self._outage = outage or Outage()

    def truncate(self, step: int) -> None:
        """Drop the lines after a step, and one that a kill left unfinished."""
        if not self.path.exists():
            return
        kept = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError, TypeError):
                continue
        self._outage.attempt(self.path, lambda: write_atomically(self.path, "".join(kept)))

    def append(self, progress: Progress, learning_rate: float | None, loss: float | None) -> None:
        """Add the line of the step that was just logged; `loss` is the mean since the line before."""
        line = {
            "step": progress.step,
            "loss": loss,
            **progress.figures,
            "gradient_norm": progress.gradient_norm,
            "learning_rate": learning_rate,
            "tokens": progress.tokens,
            "tokens_per_second": progress.tokens_per_second,
            "time": time.time(),
        }
        self._add(line)

    def evaluated(self, progress: Progress) -> None:
        """Add the line of an evaluation."""
        figures = {f"validation_{name}": value for name, value in progress.validation_figures.items()}
        line = {"step": progress.step, "validation_loss": progress.validation_loss, **figures, "time": time.time()}
        self._add(line)

    def _add(self, line: dict[str, Any]) -> None:
        self._outage.append(self.path, _json(line) + "\n")


def _json(values: dict[str, Any]) -> str:
    """As JSON, which has no NaN and no infinity: they become null."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
    return json.dumps(finite, allow_nan=False)
