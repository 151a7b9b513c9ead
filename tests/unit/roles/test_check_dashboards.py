"""The program that runs the dashboards' queries notices what it is for."""

from __future__ import annotations

import copy
import importlib.util
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("check_dashboards", ROOT / "tests" / "monitoring" / "check_dashboards.py")
assert SPEC is not None and SPEC.loader is not None
check_dashboards = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = check_dashboards  # dataclasses look their module up
SPEC.loader.exec_module(check_dashboards)

TEXT = (ROOT / "roles" / "grafana" / "files" / "dashboards" / "gaudi3-training.json").read_text(encoding="utf-8")
DASHBOARD = json.loads(TEXT)
COST = json.loads((ROOT / "roles/grafana/files/dashboards/gaudi3-cost.json").read_text(encoding="utf-8"))
NUMBER = len(check_dashboards.queries(DASHBOARD))
LABELS = {"instance": "gaudi-1", "id": "0", "part": "compute", "currency": "USD", "kind": "data_wait"}
LABELS |= {"phase": "backward", "name": "gaudi-train-demo.service", "sentence": "Rank 1 waits."}


NAME = re.compile(r"\b[a-z][\w:]+(?=\{)")


class Known:
    """A Prometheus that has one series of each of the dashboards' metrics."""

    def __init__(
        self, value: float = 1.0, labels: dict[str, str] = LABELS, hosts: tuple[str, ...] = ("gaudi-1",)
    ) -> None:
        self.names = set(NAME.findall(TEXT.replace("\\", "") + json.dumps(COST).replace("\\", "")))
        self.value, self.labels, self.hosts = value, labels, hosts
        self.asked: list[str] = []

    def series(self, expression: str) -> list[tuple[dict[str, str], list[float]]]:
        self.asked.append(expression)
        if "$" in expression:
            raise ValueError("unexpected character: '$'")
        found = set(NAME.findall(expression))
        return [(self.labels, [self.value])] if found and found <= self.names else []

    def label_values(self, selector: str, label: str) -> list[str]:
        assert (selector, label) in [
            ("up", "cluster"),
            ('up{job="node", cluster=~".*"}', "instance"),
            ('gaudi_training_step{cluster=~".*"}', "job"),
            ("cluster:gaudi_runbooks:info", "url"),
        ]
        return {"instance": list(self.hosts), "job": ["training"], "cluster": [], "url": []}[label]


def test_a_sound_dashboard_has_no_faults() -> None:
    prometheus = Known()
    assert check_dashboards.check(DASHBOARD, prometheus) == []
    assert check_dashboards.blind_spots(DASHBOARD, prometheus) == []


def test_a_job_without_a_price_has_no_cost_and_that_is_no_fault() -> None:
    prometheus = Known()
    prometheus.names = {name for name in prometheus.names if "gaudi_cost_" not in name}
    assert check_dashboards.check(COST, prometheus) == []
    assert check_dashboards.check(COST, prometheus, everything=True) != []
    prometheus.names.discard("card:habanalabs_power:watts")
    assert check_dashboards.check(COST, prometheus) != []


def test_every_query_is_asked_for_all_hosts_and_for_one() -> None:
    prometheus = Known(hosts=("gaudi-1.example.org", "gaudi-2.example.org"))
    check_dashboards.check(DASHBOARD, prometheus)
    assert len(prometheus.asked) == 2 * NUMBER + len(check_dashboards.marks(DASHBOARD))
    record = "max(instance:gaudi_training_left:seconds"
    assert [asked for asked in prometheus.asked if asked.startswith(record)] == [
        record + '{job=~".+", cluster=~".*", instance=~".+"})',
        record + '{job=~"training", cluster=~".*", instance=~"gaudi-1\\\\.example\\\\.org"})',
    ]


def test_marks_are_asked_and_need_not_have_happened() -> None:
    prometheus = Known()
    prometheus.names.discard("gaudi_training_checkpoint_last_timestamp_seconds")
    faults = check_dashboards.check(DASHBOARD, prometheus)
    assert [fault for fault in faults if "annotation" in fault] == []
    broken = json.loads(TEXT.replace("changes(gaudi_training_checkpoint", "changes($gaudi_training_checkpoint"))
    (fault,) = check_dashboards.check(broken, Known())
    assert fault.startswith("Gaudi 3 training / annotation Checkpoints: Prometheus refuses")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("gaudi_training_loss", "gaudi_training_losses", "nothing for gaudi_training_losses{"),
        ("$__rate_interval", "$__rate_intervall", "unexpected character"),
        ("{{part}}", "{{parts}}", "the legend names parts, which"),
    ],
)
def test_a_mistake_is_found(old: str, new: str, found: str) -> None:
    faults = check_dashboards.check(json.loads(TEXT.replace(old, new)), Known())
    assert faults and all(found in fault for fault in faults)


def test_nan_only_is_a_fault() -> None:
    assert len(check_dashboards.check(DASHBOARD, Known(value=math.nan))) == 2 * NUMBER + 2


def test_a_variable_without_a_value_is_a_fault() -> None:
    assert check_dashboards.check(DASHBOARD, Known(hosts=()))[0] == "Gaudi 3 training / variable instance: no value"


def test_a_query_that_always_gives_numbers_is_a_blind_spot() -> None:
    class Generous(Known):
        def series(self, expression: str) -> list[tuple[dict[str, str], list[float]]]:
            return [(self.labels, [0.0])] if "vector(0)" in expression else super().series(expression)

    dashboard: dict[str, Any] = copy.deepcopy(DASHBOARD)
    target = dashboard["panels"][1]["targets"][0]
    target["expr"] += " or vector(0)"
    assert check_dashboards.blind_spots(dashboard, Generous()) == [
        "Gaudi 3 training / Progress / A: gives numbers although its metrics were renamed, "
        "so this check says nothing about it"
    ]
