"""A hang has one sentence: in the log, in status.json, from gaudi_train_info, as an alert, on the page, of a suspect.

Needs promtool, as test_alerts does.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ansible_collections.gaudi3.scale.plugins.module_utils._health import controller, report, suspicion
from ansible_collections.gaudi3.scale.plugins.module_utils._health.healing import Fleet, Policy
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import hangs
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.status import Status
from gaudi3_scale.hangs.compare import Evidence
from gaudi3_scale.hangs.verdict import Verdict, verdict_of
from gaudi3_scale.hangs.view import Call, GroupView, View
from gaudi3_scale.launch.outcome import JobOutcome
from gaudi3_watch import cluster_sections
from gaudi3_watch.cluster_sections import Readings
from gaudi3_watch.folder import FolderSource
from gaudi3_watch.prometheus import Sample
from gaudi3_watch.view import Asked
from tests.monitoring.test_alerts import promtool, render, with_records

ROOT = Path(__file__).resolve().parents[2]
METRIC = "gaudi_training_hang_timestamp_seconds"


@pytest.fixture(name="verdict")
def a_verdict() -> Verdict:
    """Of 64 ranks, of which one waits for its data; the name of the group has what texts are quoted with."""
    groups = {"g": GroupView('mesh "dp" \\ 1', frozenset(range(64)))}
    call = Call("g", 4711, "all_reduce", (4096, 4096), "bfloat16", 130.0)
    before = Call("g", 4710, "all_reduce", (4096, 4096), "bfloat16", 131.0, 1)
    views = {
        rank: View(rank, "backward", 130.0, (before, call), end="timed out", counts={"g": 4711}) for rank in range(64)
    }
    views[37] = View(37, "dataloader.next", 129.0, (before,), counts={"g": 4710})
    found = verdict_of(Evidence(64, views, groups, ()), {rank: f"gaudi-{rank // 8 + 1}" for rank in range(64)})
    assert found is not None and found.nodes == ("gaudi-5",)
    return found


@pytest.fixture(name="jobs")
def a_folder_of_jobs(tmp_path: Path) -> Path:
    """With a job that has said that it failed."""
    folder = tmp_path / "jobs"
    (folder / "demo").mkdir(parents=True)
    control = folder / ".control" / "demo"
    control.mkdir(parents=True)
    nodes = [f"gaudi-{number}" for number in range(1, 9)]
    (control / "job.json").write_text(json.dumps({"specification": {"nodes": nodes}}))
    status = {"schema": 1, "state": "failed", "error": "timed out", "updated_at": time.time() + 60}
    (folder / "demo" / "status.json").write_text(json.dumps(status))
    return folder


def explain(jobs: Path, verdict: Verdict) -> None:
    """The launcher's part."""
    JobOutcome(jobs / "demo" / "status.json", own=False).hang(verdict, None)


@pytest.fixture(name="node_health")
def the_program_of_the_timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "engine").symlink_to(ROOT / "plugins/module_utils")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = ROOT / "roles/node_health/files/gaudi_node_health.py"
    spec = importlib.util.spec_from_file_location("gaudi_node_health", path)
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    known = set(sys.modules)
    spec.loader.exec_module(program)
    for name in set(sys.modules) - known:
        monkeypatch.delitem(sys.modules, name)
    return program


def page(program: ModuleType, jobs: Path) -> str:
    """What node_exporter serves."""
    text: str = program.page_of_hangs(hangs.found_in(str(jobs), time.time()))
    return text


def alerted(text: str, folder: Path, expected: dict[str, str]) -> str:
    """What promtool says against this summary of the alert, from the page's own line."""
    (line,) = [line for line in text.splitlines() if line.startswith(METRIC)]
    name, moment = line.rsplit(" ", 1)
    rules = with_records("TrainingHung", render())
    alert = rules["groups"][-1]["rules"][0]
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    told = {**alert["annotations"], "summary": expected.pop("summary")}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{moment}x3"}],
        "alert_rule_test": [
            {
                "eval_time": "2m",
                "alertname": "TrainingHung",
                "exp_alerts": [{"exp_labels": {**alert["labels"], **expected}, "exp_annotations": told}],
            }
        ],
    }
    (folder / "test.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))
    done = promtool("test", "rules", "test.yml", cwd=folder)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_all_who_tell_of_a_hang_say_the_same(
    verdict: Verdict, jobs: Path, node_health: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explain(jobs, verdict)
    sentence = verdict.sentence
    assert 'in group mesh "dp" \\ 1' in sentence
    assert capsys.readouterr().err == f"gaudi3-launch: {sentence}\n", "the log"
    status: dict[str, Any] = json.loads((jobs / "demo/status.json").read_text())
    assert status["hang"]["sentence"] == sentence and status["error"].startswith(f"{sentence} ")
    shown = Status.in_folder(str(jobs / "demo"))
    assert shown is not None and shown.as_dict()["hang"]["sentence"] == sentence, "gaudi_train_info"

    text = page(node_health, jobs)
    (family,) = text_string_to_metric_families(text)
    labels = family.samples[0].labels
    assert labels["sentence"] == sentence and labels["name"] == "gaudi-train-demo.service"
    assert labels["kind"] == verdict.kind and labels["state"] == "failed"
    summary = f"gaudi-train-demo.service ended with a hang: {sentence}"
    expected = {name: labels[name] for name in ("name", "kind", "certain", "sentence")}
    assert alerted(text, tmp_path, {**expected, "summary": summary}) == ""
    assert "exp:" in alerted(text, tmp_path, {**expected, "summary": summary[:-1]}), "a difference is noticed"

    found = FolderSource(jobs / "demo").page(Asked())
    about = next(each for each in found["sections"] if each["id"] == "training")["tables"][0]
    assert ["last hang", sentence] in about["rows"] and sentence in found["state"]["text"]
    alert = {"state": "firing", "labels": {"alertname": "TrainingHung"}, "annotations": {"summary": summary}}
    series = [Sample(labels, family.samples[0].value)]
    fleet = cluster_sections.fleet(Readings("", [], [alert], now={"targets": [], "hangs": series}), time.time())
    assert [row[-1] for table in fleet["tables"][:2] for row in table["rows"]] == [summary, sentence]

    found_there = [each.as_dict() for each in hangs.found_in(str(jobs), time.time())]
    answer = {"verdicts": [], "host": "gaudi-1", "hangs": found_there}
    names = [f"gaudi-{number}" for number in range(1, 9)]
    named = suspicion.of_hangs({"gaudi-1": report.read(answer)}, names, time.time())
    after, _ = controller.advance(Fleet.of(names), named, time.time(), Policy())
    assert controller.suspects(after) == {"gaudi-5": [f"job demo: {sentence}"]}


def test_a_users_text_takes_no_page_down(verdict: Verdict, jobs: Path, node_health: ModuleType) -> None:
    explain(jobs, verdict)
    path = jobs / "demo/status.json"
    status = json.loads(path.read_text())
    limit = yaml.safe_load((ROOT / "roles/prometheus/defaults/main.yml").read_text())["prometheus_scrape_limits"]
    for sentence in ("x" * 5000, "\N{GRINNING FACE}" * 900, 'a\n# TYPE up gauge\nup{x="y"} 1', "\\" * 900, '"' * 900):
        status["hang"]["sentence"], status["state"] = sentence, f"failed{sentence}"
        path.write_text(json.dumps(status))
        text = page(node_health, jobs)
        (family,) = text_string_to_metric_families(text)
        assert family.name == METRIC and len(text.splitlines()) == 3
        (sample,) = family.samples
        assert sample.labels["state"] == "unknown"
        assert all(len(value.encode()) < limit["label_value_length_limit"] for value in sample.labels.values())
