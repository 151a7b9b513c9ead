"""What the trainer serves is what docs/metrics.yml promises, and all of it."""

from __future__ import annotations

from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry

from gaudi3_scale.metrics import COST, TRAINING, register

CONTRACT = Path(__file__).resolve().parents[2] / "docs" / "metrics.yml"
PROMISED = {
    metric["name"]: metric
    for metric in yaml.safe_load(CONTRACT.read_text())["metrics"]
    if "trainer" in metric["sources"]
}


def test_the_table_is_the_contract() -> None:
    rows = {row.name: row for row in (*TRAINING, *COST)}
    assert {name: (row.type, sorted(row.labels)) for name, row in rows.items()} == {
        name: (metric["type"], sorted(metric["labels"])) for name, metric in PROMISED.items()
    }
    # The document may say more than the page: when a series is absent, and which values a label has.
    said = {name: " ".join(metric["help"].split()) for name, metric in PROMISED.items()}
    assert [name for name, row in rows.items() if not said[name].startswith(row.help.removesuffix("."))] == []


def test_what_is_served_has_the_names_and_types_of_the_table() -> None:
    registry = CollectorRegistry()
    register((*TRAINING, *COST), registry)
    suffixes = {"counter": "_total", "info": "_info"}
    served = {metric.name + suffixes.get(metric.type, ""): metric.type for metric in registry.collect()}
    assert served == {name: metric["type"] for name, metric in PROMISED.items()}
