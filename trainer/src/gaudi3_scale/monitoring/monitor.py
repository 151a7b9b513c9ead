"""Finds the anomalies in the readings of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gaudi3_scale.config.monitoring import MonitoringConfig
from gaudi3_scale.monitoring.anomaly import (
    COMPILATIONS,
    DATA_WAIT,
    MEMORY_CREEP,
    STEP_TIME,
    STRAGGLER,
    Anomaly,
    Severity,
    StepReading,
)
from gaudi3_scale.monitoring.detectors import Compilations, DataWait, MemoryCreep, Stragglers
from gaudi3_scale.monitoring.level import LevelShift

CRITICAL_RATIO = 1.5
CRITICAL_SHARE = 0.5
SOON = 10
"""Memory that lasts for fewer than this many times the steps in which the growth was seen is critical."""


class PerformanceMonitor:
    """Tells lasting changes for the worse from the noise, each once.

    The same readings give the same anomalies: processes that share their readings come to the same result.

    >>> monitor = PerformanceMonitor(warmup_steps=5)
    >>> readings = [StepReading(step, seconds=0.4 if step < 100 else 0.6) for step in range(1, 201)]
    >>> [anomaly] = [anomaly for reading in readings for anomaly in monitor.watch(reading)]
    >>> anomaly.kind, anomaly.since, anomaly.severity
    ('step_time', 100, 'critical')
    >>> anomaly.what
    'the step time has risen from 0.4 s to 0.6 s (+50 %) since about step 100'
    """

    def __init__(self, memory_limit: float | None = None, hosts: Sequence[str] = (), **settings: Any) -> None:
        """`settings` are those of the section `monitoring` of `gaudi3-train config`.

        `memory_limit` is the device's, in bytes; `hosts` are the names of the ranks' nodes, for readers.
        """
        config = MonitoringConfig(**settings)
        self._warmup = config.warmup_steps
        self._limit, self._hosts = memory_limit, tuple(hosts)
        self._step_time = LevelShift(config.step_time)
        self._data_wait = DataWait(config.data_wait)
        self._compilations = Compilations()
        self._memory = MemoryCreep(config.memory_creep)
        self._stragglers = Stragglers(config.straggler)
        self._first: int | None = None
        self._compiled = 0
        self._disturbed = False

    def watch(self, reading: StepReading) -> list[Anomaly]:
        """The next reading; the anomalies that are certain with it.

        One with a checkpoint or an evaluation is left out, unless the one before had one, too: then all may have.
        """
        if self._first is None:
            self._first = reading.step
        compiled, self._compiled = reading.compilations > self._compiled, reading.compilations
        skipped = reading.disturbed and not self._disturbed
        self._disturbed = reading.disturbed
        judged = reading.step - self._first >= self._warmup and not skipped
        shapes = self._compilations.update(reading.step, reading.compilations, judged)
        if not judged or reading.seconds <= 0:
            return []
        found = [self._shapes(reading, shapes)]
        found += [self._waiting(reading), self._creeping(reading), self._straggling(reading)]
        if not compiled:
            found.append(self._slower(reading))
        return [anomaly for anomaly in found if anomaly is not None]

    def _slower(self, reading: StepReading) -> Anomaly | None:
        computing = reading.seconds - reading.data_wait
        shift = self._step_time.update(reading.step, computing) if computing > 0 else None
        if shift is None or self._stragglers.suspects:  # all wait for a straggler
            return None
        severity = _severity(shift.ratio >= CRITICAL_RATIO - 1e-9)
        what = (
            f"the step time has risen from {shift.before:.3g} s to {shift.after:.3g} s "
            f"(+{100 * (shift.ratio - 1):.0f} %) since about step {shift.since}"
        )
        return Anomaly(STEP_TIME, reading.step, shift.since, severity, shift.before, shift.after, "seconds", what=what)

    def _waiting(self, reading: StepReading) -> Anomaly | None:
        found = self._data_wait.update(reading.step, reading.data_wait / reading.seconds)
        if found is None:
            return None
        where = "" if reading.waiting_rank is None else f" on {self._named(reading.waiting_rank)}"
        what = f"data wait takes {100 * found.after:.0f} % of a step{where}"
        if found.before < found.after:
            what += f" instead of {100 * found.before:.0f} % since about step {found.since}"
        severity = _severity(found.after >= CRITICAL_SHARE)
        return Anomaly(
            DATA_WAIT,
            reading.step,
            found.since,
            severity,
            found.before,
            found.after,
            "share",
            reading.waiting_rank,
            what,
        )

    def _shapes(self, reading: StepReading, found: Any) -> Anomaly | None:
        if found is None:
            return None
        new = found.after - found.before
        what = f"{new:g} new shapes of inputs have come since about step {found.since}, {found.after:g} in all"
        severity = _severity(new >= 4 * Compilations.EVENTS)
        return Anomaly(
            COMPILATIONS, reading.step, found.since, severity, found.before, found.after, "shapes", what=what
        )

    def _creeping(self, reading: StepReading) -> Anomaly | None:
        found = self._memory.update(reading.step, reading.memory) if reading.memory else None
        if found is None:
            return None
        steps, growth = max(1, reading.step - found.since), found.after - found.before
        left = None if self._limit is None else max(0.0, (self._limit - found.after) * steps / growth)
        lasts = "" if left is None else f"; at this rate it is full in {left:,.0f} steps"
        what = (
            f"memory of {self._named(found.rank)} has grown from {found.before / 2**20:,.1f} MiB to "
            f"{found.after / 2**20:,.1f} MiB since about step {found.since}{lasts}"
        )
        severity = _severity(left is not None and left < SOON * steps)
        return Anomaly(
            MEMORY_CREEP, reading.step, found.since, severity, found.before, found.after, "bytes", found.rank, what
        )

    def _straggling(self, reading: StepReading) -> Anomaly | None:
        found = self._stragglers.update(reading.step, reading.own) if reading.own else None
        if found is None:
            return None
        ratio = found.after / found.before
        what = (
            f"{self._named(found.rank)} takes {found.after:.3g} s for its own work and the others {found.before:.3g} s "
            f"(+{100 * (ratio - 1):.0f} %) since about step {found.since}"
        )
        severity = _severity(ratio >= CRITICAL_RATIO)
        return Anomaly(
            STRAGGLER, reading.step, found.since, severity, found.before, found.after, "seconds", found.rank, what
        )

    def _named(self, rank: int | None) -> str:
        if rank is None or rank >= len(self._hosts):
            return f"rank {rank}"
        return f"rank {rank} (on {self._hosts[rank]})"


def _severity(critical: bool) -> Severity:
    return "critical" if critical else "warning"
