"""What the parts of one job share: `fit` makes it once, and everything else is given it as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from gaudi3_scale.console import Console
from gaudi3_scale.distributed.process_group import ProcessGroup, lower_timeout
from gaudi3_scale.distributed.watchdog import Watchdog
from gaudi3_scale.files import Outage
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.interruption.leaving import Interruption
from gaudi3_scale.status import MetricsFile, Progress, StatusFile
from gaudi3_scale.throughput.ledger import Ledger

if TYPE_CHECKING:
    from gaudi3_scale.batch.schedule import BatchSchedule
    from gaudi3_scale.checkpoint.session import CheckpointSession
    from gaudi3_scale.checkpoint.store import Checkpoint
    from gaudi3_scale.config import Config
    from gaudi3_scale.config.section import Section
    from gaudi3_scale.cost.running import Watch
    from gaudi3_scale.metrics import TrainingMetrics
    from gaudi3_scale.throughput.goodput import Goodput
    from gaudi3_scale.throughput.meter import Reading


class Trackers(Protocol):
    """What a job's results are sent to, from the beginning of its training to its last evaluation."""

    def evaluated(self) -> None:
        """The loss on held-out data was read."""

    def finish(self) -> None:
        """The last result was read."""

    def give_up(self, error: BaseException) -> None:
        """The job ends early."""


@dataclass(frozen=True)
class JobPlan:
    """What a process trains with: what was asked for, and what was found. Stages of the batch replace it as a whole.

    `job/plan.py` makes it.
    """

    asked: Config
    micro_batch: int
    """Samples per forward pass."""
    accumulation: int
    """Forward passes of this process per step."""
    learning_rate: float
    """The peak of the schedule."""
    shares: tuple[int, ...] | None = None
    """Micro-batches of each rank per step; None where all take as many."""
    checkpoint: Checkpoint | None = None
    """To go on from."""
    configured: Mapping[str, int] = field(default_factory=dict)
    """The batch before processes came or went, for the manifests of checkpoints."""

    @classmethod
    def of(cls, config: Config, checkpoint: Checkpoint | None = None) -> JobPlan:
        """As it was asked for."""
        train, shares = config.train, config.ddp.balance
        return cls(
            config,
            train.micro_batch_size,
            train.accumulation_steps,
            train.learning_rate,
            tuple(shares) if isinstance(shares, list) else None,
            checkpoint,
        )

    @property
    def replicas(self) -> int:
        """Copies of a model that is split over processes."""
        return self.asked.train.replicas

    @cached_property
    def config(self) -> Config:
        """What was asked for, with the numbers of this plan."""
        numbers = {
            "micro_batch_size": self.micro_batch,
            "accumulation_steps": self.accumulation,
            "learning_rate": self.learning_rate,
        }
        changed: dict[str, Section] = {"train": self.asked.train.model_copy(update=numbers)}
        if self.shares is None and isinstance(self.asked.ddp.balance, list):
            changed["ddp"] = self.asked.ddp.model_copy(update={"balance": "none"})
        return self.asked.model_copy(update=changed)


@dataclass
class Run:
    """One process's view of its job."""

    config: Config
    """What was asked for; it stays as it is. What is trained with is in the plan, where a registered model is a folder
    of this node."""
    device: Device
    process_group: ProcessGroup
    progress: Progress
    console: Console
    status: StatusFile
    interruption: Interruption
    ledger: Ledger
    outage: Outage = field(default_factory=Outage)
    watchdog: Watchdog = field(default_factory=Watchdog.off)
    precision_named: bool = True
    """Was train.precision given by name, and not resolved from auto?"""
    registered: dict[str, Any] | None = None
    """The version of a registered model that training began from."""
    plan: JobPlan = field(init=False)
    """Made once the checkpoint to go on from is known."""
    batches: BatchSchedule = field(init=False)
    """Samples of every step; set once it is known where the job is."""
    lines: MetricsFile = field(init=False)
    """metrics.jsonl."""
    evaluations: MetricsFile = field(init=False)
    """evaluation.jsonl."""
    checkpoints: CheckpointSession = field(init=False)
    watch: Watch = field(init=False)
    measured: tuple[Reading, Goodput] | None = None
    """Speed and goodput when the loss was read last."""
    read_seconds: float = 0.0
    """For which reading the loss last waited for the device."""
    metrics: TrainingMetrics | None = None
    """What Prometheus reads; of a node's first process, if it is wanted."""
    trackers: Trackers | None = None

    def __post_init__(self) -> None:
        folder = self.config.output_dir
        self.lines = MetricsFile(folder / "metrics.jsonl", self.outage)
        self.evaluations = MetricsFile(folder / "evaluation.jsonl", self.outage)
        self.watchdog.started = self._started

    @property
    def rank(self) -> int:
        """Of this process in the job."""
        return self.process_group.topology.rank

    @property
    def world_size(self) -> int:
        """Processes of the job."""
        return self.process_group.topology.world_size

    def report_evaluation(self, keep: bool = True) -> None:
        """Hand the held-out loss on to who asked for it, and `keep` it in evaluation.jsonl."""
        if keep and self.process_group.writer:
            self.evaluations.evaluated(self.progress)
        if self.metrics is not None and self.progress.validation_loss is not None:
            self.metrics.evaluated(self.progress.validation_loss)
        if self.trackers is not None:
            self.trackers.evaluated()

    def is_logged(self, batch_idx: int) -> bool:
        """Has this batch completed a step whose loss was read?"""
        ends = (batch_idx + 1) % self.plan.accumulation == 0
        return ends and self.progress.logged_step == self.progress.step

    def _started(self) -> None:
        """The first step is made: from here on, processes wait for each other as long as for any step."""
        seconds = self.config.train.collective_timeout
        self.process_group.lower_timeout(seconds)
        lower_timeout(self.checkpoints.peers.group, seconds)
