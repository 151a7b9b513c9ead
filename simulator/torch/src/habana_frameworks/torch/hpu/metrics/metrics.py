"""Counts of what the bridge compiles and falls back from. Names: [bridge] 1.19, `hpu/metrics/metrics.py`.

Nothing is compiled, cached or defragmented here, so all counts stay at 0; there are no times.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from habana_frameworks.torch.hpu.metrics.exceptions import InvalidMetricDumpFileFormat, MetricNotFound

_STATISTICS: dict[str, dict[str, Any]] = {
    "graph_compilation": {"TotalNumber": 0, "TotalTime": 0, "AvgTime": 0},
    "cpu_fallback": {"TotalNumber": 0, "FallbackOps": {}},
    "memory_defragmentation": {"TotalNumber": 0, "TotalSuccessful": 0, "AvgTime": 0, "MaxTime": 0},
}
_CACHE: dict[str, Any] = {"TotalHit": 0, "RecipeHit": {}, "TotalMiss": 0, "RecipeMiss": {}}


class MetricDumpFormat(StrEnum):
    """Formats of `metrics_dump`."""

    json = "json"
    text = "text"


class Metric:
    """A count by its name."""

    def __init__(self, name: str, statistics: dict[str, Any]) -> None:
        self._name, self._statistics = name, statistics

    def name(self) -> str:
        """The metric's."""
        return self._name

    def stats(self) -> list[tuple[str, Any]]:
        """Each count with its name."""
        return [(name, value.copy() if isinstance(value, dict) else value) for name, value in self._statistics.items()]

    def start(self) -> None:
        """Begin to count."""

    def stop(self) -> None:
        """Stop counting."""

    def reset(self) -> None:
        """Count from 0."""


def _metrics() -> dict[str, Metric]:
    known = dict(_STATISTICS)
    if os.environ.get("PT_HPU_ENABLE_CACHE_METRICS", "").lower() in ("y", "yes", "t", "true", "on", "1"):
        known["recipe_cache"] = _CACHE
    return {name: Metric(name, statistics) for name, statistics in known.items()}


def metric_global(name: str) -> Metric | None:
    """The metric of the whole process; None where there is none of this name."""
    return _metrics().get(name)


@contextlib.contextmanager
def metric_localcontext(name: str) -> Iterator[Metric]:
    """A metric that counts inside a `with`."""
    if name not in _metrics():
        raise MetricNotFound(f"There is no metric {name!r}: take one of {', '.join(_metrics())}.")
    yield _metrics()[name]


def metrics_dump(file_name: str, format: MetricDumpFormat | str = MetricDumpFormat.json) -> None:
    """Write all metrics of the process to a file that does not exist yet."""
    if format not in ("json", "text"):
        raise InvalidMetricDumpFileFormat(f"The format is {format!r}, but it has to be 'json' or 'text'.")
    now = datetime.now().isoformat()
    if format == "json":
        rows = [
            {"metric_name": each.name(), "triggered_by": "user", "generated_on": now, "statistics": dict(each.stats())}
            for each in _metrics().values()
        ]
        text = json.dumps(rows) + "\n"
    else:
        text = ""
        for each in _metrics().values():
            counts = "".join(f"\t{name}: {value}\n" for name, value in each.stats())
            head = f"Metric name: {each.name()}\nTriggered by: user\nGenerated on: {now}\nStatistics:\n"
            text += f"{head}{counts}\n"
    with Path(file_name).open("x", encoding="utf-8") as file:
        file.write(text)
