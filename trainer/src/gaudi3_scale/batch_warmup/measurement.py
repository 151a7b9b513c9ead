"""Measures critical batches by branches; what is finished is kept, so that it may be killed and started again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.batch.schedule import BatchSchedule
from gaudi3_scale.batch_warmup.jobs import FOREVER, Train, in_processes, link_checkpoint, run_job, settings_of
from gaudi3_scale.batch_warmup.points import Branch, CriticalPoint
from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import lock_file, write_atomically


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    at: tuple[float, ...] = (0.03, 0.06, 0.12, 0.25, 0.5)
    """Points, as shares of the job's tokens."""
    branch: float = 0.03
    """Tokens of each branch, as a share of the job's."""
    most: int = 8
    """The largest batch that is tried, over the job's; a power of two."""
    seeds: int = 3
    tolerance: float = 0.0
    """Nats per token by which a loss may be higher, if the noise between seeds is less."""

    def check(self, config: Config) -> None:
        """Raise ConfigError if it cannot be carried out."""
        if config.train.batch_warmup:
            raise ConfigError("train.batch_warmup is given, and is what is to be measured: leave it out.")
        if not self.at or not all(0 < share < 1 for share in self.at):
            raise ConfigError(f"--at is {self.at}: give shares of the job between 0 and 1, as 0.05,0.1,0.2.")
        if not 0 < self.branch <= 1:
            raise ConfigError(f"--branch is {self.branch}: give a share of the job's tokens, as 0.03.")
        if self.most < 2 or self.most & (self.most - 1):
            raise ConfigError(f"--most is {self.most}: give 2, 4, 8, 16 or another power of two.")
        if self.seeds < 2 and self.tolerance <= 0:
            raise ConfigError("With --seeds 1 no noise is known: give --tolerance in nats per token, or more seeds.")


class Measurement:
    """A measurement in a folder of its own."""

    def __init__(self, config: Config, plan: Plan, folder: Path, processes: int, log: Callable[[str], None]) -> None:
        """ConfigError if the folder has another measurement."""
        plan.check(config)
        self._config, self._plan, self._folder, self._processes, self._log = config, plan, folder, processes, log
        self.first = config.train.first_batch(processes)
        self.samples = self.first * config.train.max_steps
        """Of the whole job."""
        rounding = self.first * plan.most
        self.branch_samples = -(-round(plan.branch * self.samples) // rounding) * rounding
        """Of each branch: a whole number of steps with every batch."""
        folder.mkdir(parents=True, exist_ok=True)
        values = config.model_dump(mode="json") | {"plan": asdict(plan), "processes": processes}
        key = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
        file = folder / "measurement.json"
        if file.exists() and json.loads(file.read_text())["key"] != key:
            raise ConfigError(f"{folder} has the measurement of another job, or with other options: give another --to.")
        write_atomically(file, json.dumps({"key": key}))

    def run(self, train: Train | None = None, job: Path | None = None) -> list[CriticalPoint]:
        """Measure; checkpoints are those of `job`, an output_dir, or those of a trunk which it trains itself."""
        with self._locked() as lock:
            train = train or in_processes(lock)
            points: list[CriticalPoint] = []
            for source, step in checkpoints_of(job) if job is not None else self._of_trunk(train):
                points.append(self._point(source, step, train))
            return points

    @contextmanager
    def _locked(self) -> Iterator[int]:
        with lock_file(self._folder / "lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TrainerError(
                    f"A measurement in {self._folder} is running, or a job of one that was killed: wait until it ends."
                ) from None
            yield file.fileno()

    def _of_trunk(self, train: Train) -> Iterator[tuple[Path, int]]:
        """The checkpoints of a job with the first batch, which is trained up to each point."""
        steps = sorted({max(1, round(share * self._config.train.max_steps)) for share in self._plan.at})
        for step in steps:
            name = f"step-{step:08d}"
            kept = self._folder / "points" / name
            if not kept.exists():
                self._log(f"training with {self.first} samples per step up to step {step:,} of {steps[-1]:,}")
                settings = self._settings(self._folder / "trunk", [], step)
                run_job(settings, self._processes, train)
                link_checkpoint(self._folder / "trunk" / "checkpoints" / name, kept)
            yield kept, step

    def _point(self, source: Path, step: int, train: Train) -> CriticalPoint:
        from gaudi3_scale.checkpoint import CheckpointStore
        from gaudi3_scale.checkpoint.shape import OF_A_JOB

        samples = int(CheckpointStore(source.parent, keep=1).verify(step).state(OF_A_JOB)["samples"])
        tokens = samples * self._config.tokens_per_sample
        point = CriticalPoint(step, samples, tokens, self._plan.tolerance)
        factor = 1
        while factor <= self._plan.most:
            losses = [self._branch(source, point, factor, seed, train) for seed in range(self._plan.seeds)]
            branch = Branch(factor, self.first * factor, tuple(losses))
            point.branches.append(branch)
            good = point.holds(branch)
            gap = branch.loss - point.branches[0].loss
            about = f"{gap:+.4f}, {'no worse' if good else 'worse'}: {point.tolerance:.4f} is allowed"
            self._log(
                f"from {tokens:,} tokens with {branch.samples_per_step} samples per step: held-out loss "
                f"{branch.loss:.4f} ({about if factor > 1 else f'{len(losses)} seed(s)'})"
            )
            if not good:
                break
            factor *= 2
        self._log(f"critical batch at {tokens:,} tokens: {point.critical} samples per step")
        return point

    def _branch(self, source: Path, point: CriticalPoint, factor: int, seed: int, train: Train) -> float:
        """The held-out loss of one branch; of one that is finished, what it was."""
        output = self._folder / "branches" / f"step-{point.step:08d}" / f"times-{factor}-seed-{seed}"
        result = output / "result.json"
        if not result.exists():
            link_checkpoint(source, output / "checkpoints" / source.name)
            stages = [{"from_tokens": 0, "samples_per_step": self.first}]
            if factor > 1:
                stages.append({"from_tokens": point.tokens, "samples_per_step": self.first * factor})
            steps = point.step + self.branch_samples // (self.first * factor)
            settings = self._settings(output, stages, steps)
            settings["train"]["seed"] = (self._config.train.seed + seed) % 2**32
            status = run_job(settings, self._processes, train)
            write_atomically(result, json.dumps({"loss": status["validation_loss"], "tokens": status["tokens"]}))
            shutil.rmtree(output / "checkpoints")
        return float(json.loads(result.read_text())["loss"])

    def _settings(self, output: Path, stages: Sequence[dict[str, int]], steps: int) -> dict[str, Any]:
        """Of a job that makes this many steps of the whole one, whose learning rate it follows."""
        settings = settings_of(self._config, output, self._folder / "data")
        # A schedule of one stage is the job's own batch, by which the learning rate is counted.
        stages = stages or [{"from_tokens": 0, "samples_per_step": self.first}]
        whole = self.samples * self._config.tokens_per_sample
        tokens = self._config.train.schedule_tokens or whole
        settings["train"] |= {"batch_warmup": list(stages), "max_steps": steps, "schedule_tokens": tokens}
        settings["train"]["warmup_steps"] = self._config.train.warmup_steps
        if output.parent != self._folder:
            settings["checkpoint"] |= {"every": FOREVER}
        return settings


def job_with(config: Config, stages: Sequence[dict[str, int]], processes: int) -> dict[str, Any]:
    """The settings, as given, of the job with this schedule: it learns from as many tokens, in fewer steps."""
    settings = config.model_dump(mode="json", exclude_unset=True)
    first = config.train.first_batch(processes)
    length = config.tokens_per_sample
    schedule = BatchSchedule(tuple((-(-each["from_tokens"] // length), each["samples_per_step"]) for each in stages))
    steps = schedule.steps(first * config.train.max_steps)
    train = settings.setdefault("train", {})
    train.pop("accumulation_steps", None)
    train |= {"max_steps": steps, "batch_warmup": list(stages)}
    return settings


def checkpoints_of(job: Path) -> list[tuple[Path, int]]:
    """The checkpoints that a job has left, with their steps. Raises ConfigError where there is none."""
    from gaudi3_scale.checkpoint import CheckpointStore

    store = CheckpointStore(job / "checkpoints", keep=1)
    if not store.steps():
        raise ConfigError(f"There is no checkpoint in {job}: give a job's output_dir, or leave --job out.")
    return [(store.path(step), step) for step in sorted(store.steps())]
