"""The end of a search: the best trials again, since one may have had a good moment, then the best and the default."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gaudi3_scale.files import append_lines
from gaudi3_scale.tuning.trial import Outcome
from gaudi3_scale.tuning.trial_ratio import Ratio, ratio

FINALISTS = 3
ROUNDS = 2
"""Runs of each finalist, in turn."""


class Final:
    """Runs configurations in turn. All runs are in comparison.jsonl, and those of a search that was killed count."""

    def __init__(
        self,
        path: Path,
        run: Callable[[dict[str, Any], str], Outcome],
        value: Callable[[Outcome], float | None],
        maximise: bool,
    ) -> None:
        """`run` runs the job with some values in a folder of this name; `value` is the objective's of the outcome."""
        self._path, self._run, self._value, self._maximise = path, run, value, maximise
        self._lines = _read(path)

    def choose(self, finalists: list[dict[str, Any]]) -> dict[str, Any]:
        """The best of them, by the geometric mean of its runs; the first where all fail. `finalists` are values."""
        if len(finalists) == 1:
            return finalists[0]
        logs: list[float] = [0.0] * len(finalists)
        for number in range(ROUNDS):
            order = range(len(finalists))
            for place in order if number % 2 == 0 else reversed(order):
                value = self._measured(f"final-{number}-{place}", finalists[place])
                logs[place] += math.log(value) * (1 if self._maximise else -1) if value else -math.inf
        return finalists[max(range(len(finalists)), key=logs.__getitem__)]

    def compare(
        self, best: dict[str, Any], default: dict[str, Any], repeats: int, report: Callable[[int, float, float], None]
    ) -> Ratio | None:
        """Best against default in pairs; None where too many failed. `report` gets pair, best and default."""
        pairs = []
        for number in range(repeats):
            measured = {
                which: self._measured(f"{number}-{which}", best if which == "best" else default)
                for which in (("default", "best") if number % 2 == 0 else ("best", "default"))
            }
            new, old = measured["best"], measured["default"]
            if new and old:
                pairs.append((new, old))
                report(number + 1, new, old)
        return ratio(pairs, self._maximise)

    def _measured(self, name: str, values: Mapping[str, Any]) -> float | None:
        for line in self._lines:
            if line["name"] == name and line["values"] == values:
                return None if line["value"] is None else float(line["value"])
        outcome = self._run(dict(values), name)
        value = self._value(outcome) if outcome.state == "complete" else None
        line = {"name": name, "values": dict(values), **vars(outcome), "value": value}
        append_lines(self._path, json.dumps(line, default=str) + "\n")
        return value


def _read(path: Path) -> list[dict[str, Any]]:
    """Whole lines."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
