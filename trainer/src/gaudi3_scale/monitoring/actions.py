"""What a job does about an anomaly by itself, where its owner allowed it; every action is written down.

An action that changes a setting is judged after a while by what it was taken for, and undone if that is no better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from gaudi3_scale.monitoring.anomaly import DATA_WAIT, MEMORY_CREEP, Anomaly, Kind, StepReading

JUDGED = 16
"""Readings after which an action is judged."""
BETTER = 0.75
"""What it was taken for has to fall to this share."""
FREED = 0.01
"""Share of the memory that has to be freed, else freeing is not tried again."""


@dataclass
class Knob:
    """A setting that can be changed while training."""

    get: Callable[[], int]
    set: Callable[[int], None]
    most: int


@dataclass
class _Trial:
    anomaly: Anomaly
    before: int
    after: int
    shares: list[float]


class Actions:
    """Takes the actions that are allowed.

    >>> depth = [2]
    >>> actions = Actions(["prefetch"], prefetch=Knob(lambda: depth[0], lambda ahead: depth.__setitem__(0, ahead), 64))
    >>> slow = Anomaly("data_wait", step=40, since=30, severity="warning", before=0.0, after=0.4, unit="share")
    >>> [(line["event"], line["before"], line["after"]) for line in actions.take(slow)]
    [('action', 2, 4)]
    >>> slower = [StepReading(step, seconds=1.0, data_wait=0.4) for step in range(41, 60)]
    >>> lines = [line for each in slower for line in actions.watch(each)]
    >>> [(line["event"], line["before"], line["after"]) for line in lines], depth
    ([('undone', 4, 2)], [2])
    """

    def __init__(
        self,
        allowed: Iterable[str],
        prefetch: Knob | None = None,
        free_memory: Callable[[], tuple[int, int]] | None = None,
        checkpoint: Callable[[], None] | None = None,
    ) -> None:
        """Without its means, an action is not taken. `free_memory` returns the bytes in use before and after."""
        allowed = set(allowed)
        self._prefetch = prefetch if "prefetch" in allowed else None
        self._free = free_memory if "free_memory" in allowed else None
        self._checkpoint = checkpoint if "checkpoint" in allowed else None
        self._trial: _Trial | None = None

    def take(self, anomaly: Anomaly) -> list[dict[str, Any]]:
        """The lines of anomalies.jsonl about what was done."""
        done = []
        if anomaly.kind == DATA_WAIT and self._prefetch is not None and self._trial is None:
            done += self._read_ahead(anomaly, self._prefetch)
        if anomaly.kind == MEMORY_CREEP and self._free is not None:
            before, after = self._free()
            done.append(_line("action", "free_memory", anomaly.kind, anomaly.step, (before, after), "bytes in use"))
            if before - after < FREED * before:
                self._free = None
        if anomaly.severity == "critical" and self._checkpoint is not None:
            self._checkpoint()
            done.append(_line("action", "checkpoint", anomaly.kind, anomaly.step, (None, anomaly.step), "saved step"))
        return done

    def watch(self, reading: StepReading) -> list[dict[str, Any]]:
        """Judge what was done before; the same on every rank that has the same readings."""
        trial = self._trial
        if trial is None or self._prefetch is None or reading.seconds <= 0:
            return []
        trial.shares.append(reading.data_wait / reading.seconds)
        if len(trial.shares) < JUDGED:
            return []
        self._trial = None
        share = median(trial.shares[JUDGED // 4 :])  # the first ones are read ahead for
        step, kind = reading.step, trial.anomaly.kind
        if share <= BETTER * trial.anomaly.after:
            values = trial.before, trial.after
            return [_line("kept", "prefetch", kind, step, values, "data.prefetch") | {"share": share}]
        self._prefetch.set(trial.before)
        values = trial.after, trial.before
        return [_line("undone", "prefetch", kind, step, values, "data.prefetch") | {"share": share}]

    def _read_ahead(self, anomaly: Anomaly, knob: Knob) -> list[dict[str, Any]]:
        before = knob.get()
        after = min(knob.most, 2 * before)
        if after <= before:  # 0 has no thread to read ahead
            return []
        knob.set(after)
        self._trial = _Trial(anomaly, before, after, [])
        return [_line("action", "prefetch", anomaly.kind, anomaly.step, (before, after), "data.prefetch")]


def sentence(line: dict[str, Any]) -> str:
    """A line of the above for readers."""
    name, before, after = line["action"], line["before"], line["after"]
    if name == "checkpoint":
        return f"a checkpoint of step {after} is begun, as the anomaly is critical"
    if name == "free_memory":
        sizes = f"{before / 2**20:,.1f} MiB in use before, {after / 2**20:,.1f} after"
        return f"garbage is collected and the cache emptied: {sizes}"
    if line["event"] == "kept":
        return f"data.prefetch stays {after}, as it has helped"
    again = " again, as it has not helped" if line["event"] == "undone" else ""
    return f"data.prefetch is changed from {before} to {after}{again}"


def _line(event: str, action: str, kind: Kind, step: int, values: tuple[int | None, int], unit: str) -> dict[str, Any]:
    before, after = values
    return {
        "event": event, "action": action, "kind": kind, "step": step, "before": before, "after": after, "unit": unit,
    }  # fmt: skip
