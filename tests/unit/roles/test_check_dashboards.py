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
LABELS = {
    "instance": "gaudi-1",
    "id": "0",
    "port_type": "internal",
    "part": "compute",
    "currency": "USD",
    "kind": "data_wait",
}


class Known:
    """A Prometheus that has one series of each of the dashboard's metrics."""

    def __init__(
        self, value: float = 1.0, labels: dict[str, str] = LABELS, hosts: tuple[str, ...] = ("gaudi-1",)
    ) -> None:
        self.names = set(re.findall(r"\b[a-z]\w+(?=\{)", TEXT.replace("\\", "")))
        self.value, self.labels, self.hosts = value, labels, hosts
        self.asked: list[str] = []

    def series(self, expression: str) -> list[tuple[dict[str, str], list[float]]]:
        self.asked.append(expression)
        if "$" in expression:
            raise ValueError("unexpected character: '$'")
        found = set(re.findall(r"\b[a-z]\w+(?=\{)", expression))
        return [(self.labels, [self.value])] if found and found <= self.names else []

    def label_values(self, selector: str, label: str) -> list[str]:
        assert (selector, label) == ('up{job="node"}', "instance")
        return list(self.hosts)


def test_a_sound_dashboard_has_no_faults() -> None:
    prometheus = Known()
    assert check_dashboards.check(DASHBOARD, prometheus) == []
    assert check_dashboards.blind_spots(DASHBOARD, prometheus) == []


def test_a_job_without_a_price_has_no_cost_and_that_is_no_fault() -> None:
    prometheus = Known()
    prometheus.names = {name for name in prometheus.names if not name.startswith("gaudi_cost_")}
    assert check_dashboards.check(DASHBOARD, prometheus) == []
    prometheus.names.discard("gaudi_training_step")
    assert check_dashboards.check(DASHBOARD, prometheus) != []


def test_every_query_is_asked_for_all_hosts_and_for_one() -> None:
    prometheus = Known(hosts=("gaudi-1.example.org", "gaudi-2.example.org"))
    check_dashboards.check(DASHBOARD, prometheus)
    assert len(prometheus.asked) == 2 * len(check_dashboards.queries(DASHBOARD)) == 60
    assert prometheus.asked[:2] == [
        'sum(up{job="node", instance=~".+"})',
        'sum(up{job="node", instance=~"gaudi-1\\\\.example\\\\.org"})',
    ]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("habanalabs_utilization", "habanalabs_utilisation", "nothing for habanalabs_utilisation{"),
        ("$__rate_interval", "$__rate_intervall", "unexpected character"),
        ("card {{id}}", "card {{card}}", "the legend names card, which"),
    ],
)
def test_a_mistake_is_found(old: str, new: str, found: str) -> None:
    faults = check_dashboards.check(json.loads(TEXT.replace(old, new)), Known())
    assert faults and all(found in fault for fault in faults)


def test_nan_only_is_a_fault() -> None:
    assert len(check_dashboards.check(DASHBOARD, Known(value=math.nan))) == 60


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
        "Gaudi 3 training / Nodes that answer / A: gives numbers although its metrics were renamed, "
        "so this check says nothing about it"
    ]
