"""The observations that a monitor gets, and the anomalies that it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["step_time", "data_wait", "compilations", "memory_creep", "straggler"]
Severity = Literal["warning", "critical"]

STEP_TIME: Kind = "step_time"
DATA_WAIT: Kind = "data_wait"
COMPILATIONS: Kind = "compilations"
MEMORY_CREEP: Kind = "memory_creep"
STRAGGLER: Kind = "straggler"
KINDS: dict[Kind, str] = {
    STEP_TIME: "steps take longer than before, without waiting for data and without a straggler",
    DATA_WAIT: "a large share of the step is spent waiting for the next batch",
    COMPILATIONS: "new shapes of inputs keep coming, each of which is compiled",
    MEMORY_CREEP: "memory grows from window to window",
    STRAGGLER: "one process is slower than the others",
}
"""All kinds and what they mean."""

ADVICE: dict[Kind, str] = {
    STEP_TIME: "compare clocks, temperature and other load of the nodes with the time before, and take a profile",
    DATA_WAIT: "raise data.prefetch, use faster storage or more loader processes, or prepare the data beforehand",
    COMPILATIONS: "pad batches to a few fixed shapes",
    MEMORY_CREEP: "look for tensors that are kept from step to step, such as losses that are summed with their graphs",
    STRAGGLER: "examine its node with gaudi3-train doctor, and restart the job without that node",
}
"""What to do about each kind."""


@dataclass(frozen=True)
class StepReading:
    """The steps since the reading before; for a job on several processes, of all of them."""

    step: int
    """The last of these steps."""
    seconds: float
    """Mean duration of a step, waits for data included, checkpoints and evaluations not."""
    data_wait: float = 0.0
    """Seconds of it in which training waited for data, on the process that waited longest."""
    compilations: int = 0
    """Compilations, or distinct shapes of inputs, since the start."""
    memory: tuple[float, ...] = ()
    """Bytes in use between steps, by rank; empty where it is not known."""
    own: tuple[float, ...] = ()
    """Seconds of each rank's own work, in which it waits for no other: see `monitoring.clock`; empty as above."""
    disturbed: bool = False
    """Whether there was a checkpoint or an evaluation among these steps."""
    waiting_rank: int | None = None
    """The process that waited longest for data; None of one that is alone."""


@dataclass(frozen=True)
class Anomaly:
    """Something that changed for the worse."""

    kind: Kind
    step: int
    """At which it was noticed."""
    since: int
    """At which it began, about."""
    severity: Severity
    before: float
    after: float
    unit: Literal["seconds", "share", "shapes", "bytes"]
    """Of `before` and `after`."""
    rank: int | None = None
    """Of the process, where it is one."""
    what: str = ""
    """A sentence with the figures, without its full stop."""

    @property
    def advice(self) -> str:
        """What to do."""
        return ADVICE[self.kind]

    @property
    def sentence(self) -> str:
        """The finding and its advice as one sentence."""
        return f"{self.what}: {self.advice}"

    def record(self) -> dict[str, Any]:
        """As a line of anomalies.jsonl."""
        return {
            "event": "anomaly",
            "kind": self.kind,
            "severity": self.severity,
            "step": self.step,
            "since": self.since,
            "before": self.before,
            "after": self.after,
            "unit": self.unit,
            "rank": self.rank,
            "what": self.what,
            "advice": self.advice,
        }
