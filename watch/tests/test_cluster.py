"""The page of a cluster, from a real Prometheus that has two hours of a made one, and from one that fails."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import fleet
import pytest
import yaml

from gaudi3_watch import cluster, queries
from gaudi3_watch.cluster import ClusterSource
from gaudi3_watch.prometheus import Prometheus, PrometheusError, Trace
from gaudi3_watch.view import Asked, View

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{ROOT}/.cache/tools/usr/bin:/usr/bin:/usr/local/bin"
PATIENCE = 60
RULES = """
groups:
  - name: made
    rules:
      - {alert: HpuExternalPortDown, expr: 'vector(1)', labels: {severity: warning, instance: gaudi-2},
         annotations: {summary: 'Port 1 <b>of</b> accel3 is down.'}}
      - {alert: Watchdog, expr: 'vector(1)', labels: {severity: none}}
"""


def part(found: View, name: str) -> View:
    return next(each for each in found["sections"] if each["id"] == name)


def tiles(found: View, name: str) -> dict[str, str]:
    return {each["label"]: each["value"] for each in part(found, name)["tiles"]}


def test_every_metric_is_in_the_contract() -> None:
    known = {each["name"] for each in yaml.safe_load((ROOT / "docs/reference/metrics.yml").read_text())["metrics"]}
    asked = [*queries.INSTANT.values(), queries.TRAINED, queries.CHECKPOINTS, queries.RESTARTS]
    asked += [
        line.query for charts in (queries.CHARTS, queries.OF_A_NODE) for lines in charts.values() for line in lines
    ]
    names = {name for query in asked for name in re.findall(r"\b(?:gaudi|habanalabs|node)_\w+|\bup\b", query)}
    assert len(names) > 30
    assert {re.sub(r"(?<=seconds)_(sum|count)$", "", name) for name in names} - known == set()


@contextmanager
def serving(folder: Path) -> Iterator[Prometheus]:
    """A Prometheus with the made cluster, its files in a folder; it ends with the block."""
    program, promtool = (shutil.which(name, path=PATH) for name in ("prometheus", "promtool"))
    assert program and promtool
    (folder / "made.txt").write_text(fleet.openmetrics())
    (folder / "rules.yml").write_text(RULES)
    (folder / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\nrule_files: [rules.yml]\n")
    make = [promtool, "tsdb", "create-blocks-from", "openmetrics", "made.txt", "data"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    given = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]
    with (folder / "log").open("wb") as log:
        command = [program, *given, f"--web.listen-address={address}"]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        found, end = Prometheus(f"http://{address}"), time.monotonic() + PATIENCE
        while True:
            try:
                if len(found.alerts()) == 2:
                    break
            except PrometheusError:
                assert server.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < end
            time.sleep(0.1)
        yield found
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    if not all(shutil.which(name, path=PATH) for name in ("prometheus", "promtool")):
        pytest.skip("prometheus and promtool are missing: run make prepare")
    with serving(tmp_path_factory.mktemp("prometheus")) as found:
        yield found


class Past(Prometheus):
    """The same, asked as if it were the time of the made cluster."""

    def __init__(self, url: str, now: float = fleet.NOW) -> None:
        super().__init__(url)
        self._now = now

    def _data(self, path: str, asked: dict[str, str]) -> object:
        return super()._data(path, {**asked, "time": str(self._now)} if path == "query" else asked)


@pytest.fixture(scope="module")
def source(prometheus: Prometheus) -> ClusterSource:
    return ClusterSource(Past(prometheus.url), clock=lambda: fleet.NOW)


def test_the_span_begins_with_the_figures_of_a_prometheus_that_is_young(prometheus: Prometheus) -> None:
    """A demo of some minutes would be a dot at the end of six hours."""
    now = [float(fleet.NOW)]
    source = ClusterSource(Past(prometheus.url), clock=lambda: now[0])
    shown = source.page(Asked())
    begins = fleet.NOW - fleet.HOURS * 3600
    assert begins - 180 < shown["span"]["begin"] <= begins and shown["span"]["end"] == fleet.NOW
    assert shown["usual"] == shown["span"]["end"] - shown["span"]["begin"]
    now[0] += 61
    assert source.page(Asked(width=601))["span"]["begin"] == shown["span"]["begin"], "it does not wander"
    now[0] += 86400
    assert source.page(Asked(width=602))["span"]["begin"] == now[0] - cluster.USUAL_SPAN
    assert source.page(Asked(last=900))["span"]["begin"] == now[0] - 900
    empty = ClusterSource(Past(prometheus.url), clock=lambda: fleet.NOW - 10 * 86400.0)
    assert empty.page(Asked())["span"]["begin"] == fleet.NOW - 10 * 86400 - cluster.USUAL_SPAN
    fresh = ClusterSource(Past(prometheus.url), clock=lambda: begins + 60.0)
    assert fresh.page(Asked())["span"]["begin"] == begins + 60 - cluster.LEAST_SPAN


def test_a_cluster_fills_its_sections(source: ClusterSource) -> None:
    found = source.page(Asked(last=7200, width=300))
    json.dumps(found, allow_nan=False)
    assert [each["id"] for each in found["sections"] if each.get("empty")] == []
    for section in found["sections"]:
        assert [each["title"] for each in section["charts"] if each.get("empty")] in ([], ["Held-out loss"]), section[
            "id"
        ]
    assert tiles(found, "training")["Step"] == "5,000" and tiles(found, "training")["Loss"] == "2.054"
    assert tiles(found, "goodput")["Goodput"] == "70 %"
    assert tiles(found, "cards") == {
        "Cards": "16",
        "Hottest": "71.8 \N{DEGREE SIGN}C",
        "Power": "9.12 kW",
        "Ports down": "1",
        "Cards with uncorrected errors": "1",
    }
    assert tiles(found, "nodes") == {"Examined": "2", "Not fit for work": "1", "Out of service": "1"}
    assert found["nodes"] == ["gaudi-1", "gaudi-2"]
    kinds = [(each["kind"], (each["time"] - fleet.NOW) // 60) for each in found["marks"]]
    assert kinds == [
        *(("checkpoint", at) for at in (-120, -90, -60)),
        ("restart", -60),
        ("checkpoint", -30),
        ("checkpoint", 0),
    ]
    assert (found["state"]["name"], found["state"]["level"]) == ("1 alert", "warn")


def test_faults_are_marked(source: ClusterSource) -> None:
    found = source.page(Asked(last=7200))
    (row,) = [row for row in part(found, "cards")["tables"][0]["rows"] if isinstance(row[6], dict)]
    assert (row[0]["text"], row[1], row[6]["level"], row[7]["text"]) == ("gaudi-2", "3", "bad", "1 of 3")
    assert part(found, "nodes")["tables"][0]["rows"][0][1] == {"text": "1 node fault (error)", "level": "bad"}
    (alert,) = part(found, "fleet")["tables"][0]["rows"]
    assert (
        alert[0] == {"text": "HpuExternalPortDown", "level": "warn"} and alert[4] == "Port 1 <b>of</b> accel3 is down."
    )
    hung = next(each for each in part(found, "fleet")["tables"] if each["id"] == "hangs")
    name, state, at, sentence = hung["rows"][0]
    assert (name, state, sentence) == ("gaudi-train-demo.service", "failed", fleet.HANG["sentence"])
    assert at == "2023-11-14 22:05:00 UTC"
    ports = next(each for each in part(found, "cards")["charts"] if each["id"] == "ports")
    assert ports["series"][0]["last"][-1] == 1 and ports["series"][0]["last"][0] == 0


def test_a_simulated_job_is_said_to_be_one(source: ClusterSource) -> None:
    found = source.page(Asked(last=7200))
    assert "nothing about a Gaudi" in found["simulated"]
    assert [each["title"] for each in part(found, "training")["charts"] if each["id"] in ("speed", "step")] == [
        "Tokens per second, on the simulator",
        "Time of a step, on the simulator",
    ]


def test_a_simulated_job_that_has_ended_is_said_to_have_been_one(prometheus: Prometheus) -> None:
    """An hour later no training is left, and the span has one."""
    found = ClusterSource(Past(prometheus.url, fleet.NOW + 3600), clock=lambda: fleet.NOW + 3600).page(Asked(last=7200))
    assert "nothing about a Gaudi" in found["simulated"]
    assert [each["name"] for each in part(found, "training")["charts"][0]["series"]] == [
        "training loss",
        "held-out loss",
        "baseline",
    ]
    assert tiles(found, "training")["Step"] == "\N{EN DASH}"


def test_what_takes_too_long_is_said(prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what has come by then is shown."""

    class Slow(Past):
        def query_range(self, query: str, begin: float, end: float, step: float) -> list[Trace]:
            if "temperature" in query:
                released.wait(PATIENCE)
            return super().query_range(query, begin, end, step)

    released = threading.Event()
    blocked = sum("temperature" in line.query for line in queries.CHARTS["temperature"])

    def until_the_others_are_there(futures: Sequence[Future[object]], _seconds: float) -> None:
        end = time.monotonic() + PATIENCE
        while sum(not future.done() for future in futures) > blocked and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(cluster, "wait", until_the_others_are_there)
    found = ClusterSource(Slow(prometheus.url), clock=lambda: fleet.NOW).page(Asked())
    released.set()
    assert f"{blocked} of " in found["problems"][0]["text"]
    assert found["sections"][0]["tiles"] and part(found, "cards")["tiles"]


def test_a_node_has_its_own_cards(source: ClusterSource) -> None:
    found = source.page(Asked(last=7200, node="gaudi-2"))
    assert tiles(found, "cards")["Cards"] == "8"
    temperature = part(found, "cards")["charts"][0]
    assert [each["name"] for each in temperature["series"]] == [f"card {number}" for number in range(8)]
    assert "knows no node" in source.page(Asked(node='x"} or up{a="'))["problems"][0]["text"]


def test_where_nothing_was_measured_each_section_says_so(prometheus: Prometheus) -> None:
    found = ClusterSource(Past(prometheus.url), clock=lambda: fleet.NOW).page(
        Asked(begin=1e9, end=1e9 + 3600, width=100)
    )
    assert all(each["empty"]["why"] for each in part(found, "cards")["charts"])


def test_a_prometheus_that_is_gone_is_said_to_be_in_each_section(tmp_path: Path) -> None:
    (tmp_path / "gaudi-1.report.json").write_text('{"healthy": true}')
    found = ClusterSource(Prometheus("http://127.0.0.1:1"), tmp_path, simulated=True).page(Asked())
    json.dumps(found, allow_nan=False)
    assert (
        found["state"]["level"] == "bad" and "cannot be reached" in found["problems"][0]["text"] and found["simulated"]
    )
    assert [each["id"] for each in found["sections"] if not each.get("empty")] == ["nodes"]


def test_many_browsers_are_one_question(prometheus: Prometheus) -> None:
    source = ClusterSource(Past(prometheus.url), clock=lambda: fleet.NOW)
    assert source.page(Asked()) is source.page(Asked())
    assert source.page(Asked(width=700)) is not source.page(Asked())
