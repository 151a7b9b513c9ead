"""What the parts of one job share: `fit` makes it once, and everything else is given it as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gaudi3_scale.console import Console
from gaudi3_scale.distributed.team import Team, lower_timeout
from gaudi3_scale.distributed.watchdog import Watchdog
from gaudi3_scale.files import Outage
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.interruption.leaving import Interruption
from gaudi3_scale.status import MetricsFile, Progress, StatusFile
from gaudi3_scale.throughput.ledger import Ledger

if TYPE_CHECKING:
    from gaudi3_scale.batch.schedule import BatchSchedule
    from gaudi3_scale.checkpoint.session import CheckpointSession
    from gaudi3_scale.config import Config
    from gaudi3_scale.cost.running import Watch
    from gaudi3_scale.metrics import TrainingMetrics
    from gaudi3_scale.throughput.goodput import Goodput
    from gaudi3_scale.throughput.meter import Reading


@dataclass
class Run:
    """One process's view of its job."""

    config: Config
    """What is trained with: accumulation follows the batch, if that grows or the number of processes has changed."""
    device: Device
    team: Team
    progress: Progress
    console: Console
    status: StatusFile
    interruption: Interruption
    ledger: Ledger
    outage: Outage = field(default_factory=Outage)
    watchdog: Watchdog = field(default_factory=Watchdog.off)
    precision_named: bool = True
    """Was train.precision given by name, and not resolved from auto?"""
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

    def __post_init__(self) -> None:
        folder = self.config.output_dir
        self.lines = MetricsFile(folder / "metrics.jsonl", self.outage)
        self.evaluations = MetricsFile(folder / "evaluation.jsonl", self.outage)
        self.watchdog.started = self._started

    @property
    def rank(self) -> int:
        """Of this process in the job."""
        return self.team.topology.rank

    @property
    def world_size(self) -> int:
        """Processes of the job."""
        return self.team.topology.world_size

    def is_logged(self, batch_idx: int) -> bool:
        """Has this batch completed a step whose loss was read?"""
        ends = (batch_idx + 1) % self.config.train.accumulation_steps == 0
        return ends and self.progress.logged_step == self.progress.step

    def _started(self) -> None:
        """The first step is made: from here on, processes wait for each other as long as for any step."""
        seconds = self.config.train.collective_timeout
        self.team.lower_timeout(seconds)
        lower_timeout(self.checkpoints.peers.group, seconds)
