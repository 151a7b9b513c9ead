"""What the trainer serves is what docs/reference/metrics.yml promises, and all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from gaudi3_scale.hangs import ring
from gaudi3_scale.metrics import COST, TRAINING, register

CONTRACT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.yml"
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


def test_the_phase_is_that_of_the_moment_in_which_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    register(TRAINING, registry)

    def phases() -> dict[str, float]:
        name = "gaudi_training_phase_seconds"
        found = (sample for metric in registry.collect() if metric.name == name for sample in metric.samples)
        return {sample.labels["phase"]: sample.value for sample in found}

    monkeypatch.setattr(ring, "_current", None)
    assert phases() == {}, "no launcher reads notes"
    monkeypatch.setenv(ring.FOLDER, str(tmp_path))
    notes = ring.start(0, 2, 2)
    assert notes is not None
    notes._clock = lambda: 10**9
    notes.mark(ring.DATALOADER)
    notes._clock = lambda: 42 * 10**9
    assert phases() == {"dataloader.next": 41}
    notes.mark(ring.BACKWARD)
    assert phases() == {"backward": 0}
