"""The file that `gaudi3-benchmark run` writes: what was measured, on what, and every single time.

The file holds raw times alone. Medians, intervals and rates are computed from them by whoever reads it, so that no
figure in a result can contradict its measurement.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gaudi3_benchmark.intervals import Interval, median_interval
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically

SCHEMA_VERSION: Literal[1] = 1
"""Of the file; a reader refuses any other."""

Outcome = Literal["planned", "measured", "out_of_memory", "skipped", "failed"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Case(_Part):
    """What is measured. Two rows are of the same thing if their cases are equal."""

    shape: str = Field(min_length=1)
    """Name of the shape, as llama-3.1-8b."""
    size: int = Field(ge=1)
    """Tokens of a sequence; of an image model the pixels along one side."""
    batch_size: int = Field(ge=1)
    """Samples of one step."""
    precision: str = Field(min_length=1)
    """As `train.precision`."""
    recompute: str = "none"
    """As `memory.activation_checkpointing`."""
    config: dict[str, Any] = {}
    """Changes to the published shape, in the names of its configuration, such as fewer layers."""

    @property
    def label(self) -> str:
        """The case as text, with a note where the shape is not as it was published."""
        changes = ", ".join(f"{name}={value}" for name, value in sorted(self.config.items()))
        return f"{self.shape} ({changes})" if changes else self.shape

    @property
    def text(self) -> str:
        """The whole case in one line."""
        recompute = "" if self.recompute == "none" else f", recompute {self.recompute}"
        return f"{self.label}, size {self.size:,}, batch {self.batch_size}, {self.precision}{recompute}"


class Round(_Part):
    """One time that the model was built, warmed up and stepped."""

    warm_up: tuple[float, ...]
    """Seconds of each step before the timed ones, compilation included."""
    seconds: tuple[float, ...] = Field(min_length=1)
    """Seconds of each timed step, the device synchronised before and after it."""
    peak_memory_bytes: int | None = None
    """Highest allocation on the device; on CPU the highest resident set of the whole process."""

    @model_validator(mode="after")
    def _positive(self) -> Round:
        if min(self.seconds) <= 0:
            raise ValueError("a step takes more than 0 seconds")
        return self


class Row(_Part):
    """A case and what came of it."""

    case: Case
    outcome: Outcome = "planned"
    words: str = ""
    """Why it was not measured."""
    unit: Literal["tokens", "images"] = "tokens"
    units_per_step: int = Field(0, ge=0)
    parameters: int = Field(0, ge=0)
    flops_per_step: float | None = None
    """Operations of the model for one step, forward and backward; what is computed again is not in it."""
    rounds: tuple[Round, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Row:
        if self.outcome == "measured" and not (self.rounds and self.units_per_step and self.parameters):
            raise ValueError(f"the row of {self.case.text} is measured, and lacks its times or sizes")
        return self

    @property
    def seconds(self) -> Interval:
        """Median time of a step with its 95 % interval, in seconds."""
        return median_interval([each.seconds for each in self.rounds])

    @property
    def rate(self) -> Interval:
        """Tokens or images per second, with the 95 % interval."""
        step = self.seconds
        return Interval(*(self.units_per_step / value for value in (step.high, step.middle, step.low)))

    @property
    def flops_rate(self) -> float | None:
        """FLOP/s of the model at the median time; None where its operations are not known."""
        return None if self.flops_per_step is None else self.flops_per_step / self.seconds.middle

    @property
    def peak_memory_bytes(self) -> int | None:
        """The highest of all rounds."""
        return max((each.peak_memory_bytes for each in self.rounds if each.peak_memory_bytes is not None), default=None)


class Settings(_Part):
    """How it was measured."""

    warm_up: int = Field(ge=0)
    """Steps of each round that are not timed."""
    repeats: int = Field(ge=1)
    """Timed steps of each round."""
    rounds: int = Field(ge=1)
    """How often each row is measured; the rows take turns."""
    mode: str
    """As `train.mode`."""
    threads: int = Field(ge=1)
    """CPU threads of the process."""
    seed: int = 0


class Environment(_Part):
    """What it was measured on; it has no name, address or serial number of the machine."""

    device: str
    hardware_name: str | None
    """What the accelerator calls itself; null for a CPU and for whatever stands in for a card."""
    simulated: bool
    software: dict[str, str]
    driver: str | None = None
    processor: str | None = None
    cores: int | None = None
    """CPU cores that the process may use."""
    variables: dict[str, str] = {}
    """Of the device's own software, as they were set."""
    peak_flops: dict[str, float] = {}
    """Confirmed dense peak in FLOP/s by precision; a precision that is not here has no MFU."""

    @model_validator(mode="after")
    def _honest(self) -> Environment:
        if self.simulated != (self.device == "hpu" and self.hardware_name is None):
            raise ValueError("an hpu is simulated exactly if it has no hardware name")
        return self

    @property
    def label(self) -> str:
        """The device for readers: GAUDI3, simulated hpu, cpu."""
        return self.hardware_name or ("simulated " if self.simulated else "") + self.device


class Running(_Part):
    """The row that was being measured when the file was written."""

    row: int
    attempts: int


class Result(_Part):
    """A whole file.

    >>> case = Case(shape="llama-tiny", size=64, batch_size=2, precision="32-true")
    >>> row = Row(case=case, outcome="measured", units_per_step=128, parameters=100,
    ...           rounds=[Round(warm_up=[], seconds=[0.5] * 5)] * 2)
    >>> row.rate
    Interval(low=256.0, middle=256.0, high=256.0)
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    program: str
    """Name and version of what measured."""
    began: str
    """In UTC, as 2026-11-23T06:00:00Z."""
    settings: Settings
    environment: Environment
    rows: tuple[Row, ...]
    running: Running | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Result:
        seen: list[Case] = []
        for row in self.rows:
            if row.case in seen:
                raise ValueError(f"there are two rows of {row.case.text}")
            seen.append(row.case)
        return self

    @property
    def complete(self) -> bool:
        """Is every planned row done?"""
        return all(not remaining(row, self.settings.rounds) for row in self.rows)

    def mfu(self, row: Row) -> float | None:
        """Model FLOPs utilization of a row, 0 to 1; None where the device's peak is not confirmed."""
        peak, rate = self.environment.peak_flops.get(row.case.precision), row.flops_rate
        return rate / peak if peak and rate is not None and not self.environment.simulated else None


def remaining(row: Row, rounds: int) -> int:
    """Rounds that are still to be measured."""
    return rounds - len(row.rounds) if row.outcome in ("planned", "measured") else 0


def tokens_per_second(
    result: Result, shape: str, batch_size: int, precision: str, sequence_length: int | None = None
) -> tuple[float, float, float]:
    """Low end, middle and high end of the 95 % interval of tokens per second of one device.

    ConfigError if the file has no such row of the shape as it was published, if several sequence lengths fit, if the
    row was not measured, and if the device is simulated, whose times say nothing about a Gaudi.
    """
    if result.environment.simulated:
        raise ConfigError(
            "The result was measured on the simulated hpu, whose times are no measurement of Gaudi: give a result file "
            "of a real device."
        )
    named = [row for row in result.rows if row.case.shape == shape and not row.case.config and row.unit == "tokens"]
    found = [
        row
        for row in named
        if (row.case.batch_size, row.case.precision) == (batch_size, precision)
        and sequence_length in (None, row.case.size)
    ]
    wanted = f"{shape} with batch {batch_size} and {precision}"
    if not found:
        there = "; ".join(row.case.text for row in named) or f"no {shape} as it was published"
        raise ConfigError(f"The result file has no row of {wanted} (it has {there}): measure it, or choose another.")
    if len(found) > 1:
        raise ConfigError(
            f"The result file has {len(found)} rows of {wanted}, of which the sequence length or the recomputation "
            f"differ ({'; '.join(row.case.text for row in found)}): keep one of them."
        )
    if found[0].outcome != "measured":
        raise ConfigError(
            f"The row of {wanted} is {found[0].outcome.replace('_', ' ')}, and has no throughput: choose another row."
        )
    rate = found[0].rate
    return rate.low, rate.middle, rate.high


def read(path: Path) -> Result:
    """The result in a file; a ConfigError for one that cannot be read or is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"{path} cannot be read ({reason}): give a file that gaudi3-benchmark run has written."
        ) from None
    try:
        whole = json.loads(text)
        if isinstance(whole, dict) and whole.get("schema_version") not in (None, SCHEMA_VERSION):
            raise ConfigError(
                f"{path} has schema version {whole['schema_version']}, and this release reads version "
                f"{SCHEMA_VERSION}: use the release that wrote it."
            )
        return Result.model_validate(whole)
    except (ValidationError, ValueError) as error:
        reason = _gist(error)
        raise ConfigError(
            f"{path} is no result of gaudi3-benchmark ({reason}): give a file that gaudi3-benchmark run has written."
        ) from None


def write(result: Result, path: Path) -> None:
    """Replace the file."""
    write_atomically(path, result.model_dump_json(indent=1) + "\n")


def _gist(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    return str(error)
