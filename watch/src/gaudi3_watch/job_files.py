"""What the files of one job say over time: metrics.jsonl, evaluation.jsonl and goodput.jsonl, read as they grow."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from gaudi3_scale.cost.bill import Bill, Spent
from gaudi3_scale.cost.what_if import Causes, WhatIf
from gaudi3_scale.throughput import goodput
from gaudi3_scale.throughput.ledger import CHECKPOINT
from gaudi3_watch.downsample import Columns
from gaudi3_watch.tail import JsonLines

METRICS = "metrics.jsonl"
EVALUATION = "evaluation.jsonl"
MEASURED = ("loss", "gradient_norm", "learning_rate", "tokens_per_second", "step_seconds")
MOST_LEDGER_LINES = 100_000
"""A job writes one each half minute, so that these are a month."""
MOST_MARKS = 20_000


class JobFiles:
    """The series of a job, from the files in its folder."""

    def __init__(self, folder: Path) -> None:
        self._what_if: WhatIf | None = None
        """Of the lines until now; None until it is asked for."""
        self._begin_metrics()
        self._begin_evaluation()
        self._begin_ledger()
        self.files = (
            JsonLines(folder / METRICS, self._metric, self._begin_metrics),
            JsonLines(folder / EVALUATION, self._evaluated, self._begin_evaluation),
            JsonLines(folder / goodput.FILE, self._account, self._begin_ledger),
        )

    def poll(self, most: int) -> bool:
        """Read what is new, at most about ``most`` bytes of each file; whether there was something."""
        changed = [file.poll(most) for file in self.files]  # each of them, whether or not another has changed
        return any(changed)

    @property
    def share_read(self) -> float:
        """How much of the files was read, from 0 to 1."""
        whole = sum(file.size for file in self.files)
        return sum(min(file.offset, file.size) for file in self.files) / whole if whole else 1.0

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time of all."""
        tables = [each for each in (self.metrics, self.evaluations, self.parts) if len(each)]
        if not tables:
            return None
        return min(each.first or 0.0 for each in tables), max(each.newest or 0.0 for each in tables)

    @property
    def clock_steps(self) -> int:
        """How often the job's clock was set back."""
        return self.metrics.clock_steps + self.evaluations.clock_steps + self.parts.clock_steps

    @property
    def spent(self) -> Spent | None:
        """Money until the ledger's last line; None without a price."""
        return self._bill.spent()

    def goodput(self) -> goodput.Goodput:
        """The account until the ledger's last line."""
        return self._bill.goodput()

    def what_if(self) -> WhatIf:
        """What the job would have taken without each cause, until the ledger's last line."""
        if self._what_if is None:
            self._what_if = self._causes.what_if()
        return self._what_if

    def _begin_metrics(self) -> None:
        self.metrics = Columns(MEASURED)
        self._previous: tuple[float, float] | None = None
        self.not_finite = 0
        """Logged losses that are no finite number."""

    def _begin_evaluation(self) -> None:
        self.evaluations = Columns(("validation_loss",))

    def _begin_ledger(self) -> None:
        self._bill, self._causes = Bill(), Causes()
        self._what_if = None
        self._line: dict[str, Any] | None = None
        self._ledger_lines = 0
        self.parts = Columns((*goodput.PARTS, "ratio", "spent"))
        self.marks: list[tuple[float, str, str]] = []
        self.ledger_is_cut = False

    def _metric(self, line: dict[str, Any]) -> None:
        time, step = _time(line), _number(line["step"])
        found = {name: _number(line.get(name)) for name in MEASURED}
        if step is None:
            raise ValueError(line["step"])
        if found["loss"] is None:
            self.not_finite += 1
        # The first line of a process has no speed: what lies before it is a restart and no step.
        goes_on = found["tokens_per_second"] is not None
        if goes_on and self._previous and step > self._previous[1] and time > self._previous[0]:
            found["step_seconds"] = (time - self._previous[0]) / (step - self._previous[1])
        self._previous = (time, step)
        self.metrics.add(time, found)

    def _evaluated(self, line: dict[str, Any]) -> None:
        self.evaluations.add(_time(line), {"validation_loss": _number(line["validation_loss"])})

    def _account(self, line: dict[str, Any]) -> None:
        _time(line)
        if self._ledger_lines >= MOST_LEDGER_LINES:
            self.ledger_is_cut = True
            return
        checked, before = goodput.checked(line), self._line
        self._bill.add(checked)
        self._causes.add(checked)
        self._what_if = None
        self._line, self._ledger_lines = checked, self._ledger_lines + 1
        found, spent = self._bill.goodput(), self._bill.spent()
        whole = found.total or 1
        shares: dict[str, float | None] = {part: 100 * ns / whole for part, ns in found.nanoseconds.items()}
        shares |= {"ratio": 100 * found.ratio, "spent": spent.total if spent else None}
        self.parts.add(checked["time"], shares)
        if len(self.marks) >= MOST_MARKS:
            return
        if before and before["run"] == checked["run"]:
            if checked["nanoseconds"][CHECKPOINT] > before["nanoseconds"][CHECKPOINT]:
                self.marks.append((checked["time"], "checkpoint", f"checkpoint at step {checked['step']:,}"))
        elif before:
            self.marks.append((checked["time"], "restart", f"restart from step {checked['step']:,}"))


def _number(value: Any) -> float | None:
    """A finite number, None of null; ValueError of anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    return float(value) if math.isfinite(value) else None


def _time(line: dict[str, Any]) -> float:
    time = _number(line["time"])
    if time is None or not 0 < time < goodput.LATEST_TIME:
        raise ValueError(line["time"])
    return time
