"""gaudi_passport: files on the controller, check mode, a second run, and a node that lost its health."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_passport

VERSIONS = {"board": "HL-325L", "driver": "1.23.0-2eae87a"}
HEALTH = {"verdicts": [], "errors": [], "suspects": [], "versions": VERSIONS, "figures": {}}
FAULT = {"component": "accel3", "kind": "node fault", "severity": "critical", "action": "reset"}
SICK = {**HEALTH, "verdicts": [{**FAULT, "message": "accel3: out of order"}]}


@pytest.fixture(name="issue")
def issue_a_passport(run_module: Any, tmp_path: Path) -> Any:
    def issue(health: dict[str, Any] = HEALTH, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = run_module(
            gaudi_passport, examinations={"gaudi-1": health}, folder=str(tmp_path), **more
        )
        return {**result, **result.get("nodes", {}).get("gaudi-1", {})}

    return issue


def test_it_is_issued_once(issue: Any, tmp_path: Path) -> None:
    planned = issue(check=True)
    assert (planned["changed"], planned["issued"], list(tmp_path.iterdir())) == (True, True, [])
    first = issue(diff=True)
    assert (first["changed"], first["issued"], first["reason"]) == (True, True, "there is none")
    key = tmp_path / "passports.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text().strip() not in str(first)
    again = issue()
    assert (again["changed"], again["issued"]) == (False, True)
    assert issue(check=True)["changed"] is False


def test_another_version_makes_another(issue: Any) -> None:
    issue()
    other = issue({**HEALTH, "versions": {**VERSIONS, "driver": "1.24.1"}})
    assert (other["changed"], other["reason"]) == (True, "driver was 1.23.0-2eae87a and is 1.24.1")


def test_a_node_that_lost_its_health_loses_its_passport(issue: Any, tmp_path: Path) -> None:
    issue()
    path = tmp_path / "gaudi-1.passport.json"
    planned = issue(SICK, check=True)
    assert (planned["changed"], planned["issued"], path.exists()) == (True, False, True)
    lost = issue(SICK)
    assert (lost["changed"], lost["issued"], path.exists()) == (True, False, False)
    assert "accel3: out of order" in lost["reason"]
    assert issue(SICK)["changed"] is False


def test_nodes_are_compared_and_reported(run_module: Any, tmp_path: Path) -> None:
    """Eight nodes of which one is slow: it has no passport, and its report says why."""
    figures = {f"gaudi-{number}": {"all_reduce": 250.0 + number / 10} for number in range(7)} | {
        "gaudi-7": {"all_reduce": 120.0}
    }
    examinations = {node: {**HEALTH, "figures": mine} for node, mine in figures.items()}
    result = run_module(gaudi_passport, examinations=examinations, folder=str(tmp_path))
    assert {node for node, found in result["nodes"].items() if not found["issued"]} == {"gaudi-7"}
    assert [node for node, found in result["nodes"].items() if found["drains"]] == ["gaudi-7"]
    report = json.loads((tmp_path / "gaudi-7.report.json").read_text())
    assert (report["healthy"], report["drains"]) == (False, True)
    assert "all_reduce in GB/s is 120 where the median of 8 is" in report["verdicts"][0]
    assert json.loads((tmp_path / "gaudi-0.report.json").read_text())["healthy"] is True
    assert run_module(gaudi_passport, examinations=examinations, folder=str(tmp_path))["changed"] is False


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"days": 0}, "days was 0: give 1 or more."),
        ({"folder": "/nowhere"}, "There is no folder /nowhere: make it first."),
    ],
)
def test_bad_input_is_refused(run_module: Any, tmp_path: Path, more: dict[str, Any], message: str) -> None:
    result = run_module(gaudi_passport, **{"examinations": {"n": HEALTH}, "folder": str(tmp_path), **more})
    assert (result.get("failed"), result["msg"]) == (True, message)
    assert list(tmp_path.iterdir()) == []


def test_a_key_file_that_is_no_key(issue: Any, tmp_path: Path) -> None:
    (tmp_path / "passports.key").write_text("oops\n")
    assert "64 hex digits" in issue()["msg"]


def test_a_passport_of_depth_deep_takes_the_pair_search(issue: Any) -> None:
    found = issue(depth="deep", pair_search={"tested": ["gaudi-2"], "nodes": [], "links": []})
    reason = "gaudi-1 gets no passport of depth deep, as the pair search did not test it."
    assert (found["issued"], found["reason"], found["drains"]) == (False, reason, False)
    assert issue(depth="deep", pair_search={"tested": ["gaudi-1"], "nodes": [], "links": []})["issued"]


@pytest.mark.parametrize(
    ("search", "drains", "message"),
    [
        (
            {"nodes": ["gaudi-1"], "links": []}, True,
            "node: every collective with another node failed or was slow (action: isolate), found by pair-search",
        ),
        (
            {"nodes": [], "links": [["gaudi-1", "gaudi-3"]]}, False,
            "link to gaudi-3: collectives with gaudi-3 fail or are slow, those with others are not: look at the way "
            "between them (action: watch), found by pair-search",
        ),
    ],
    ids=["node", "link"],
)  # fmt: skip
def test_what_the_pair_search_named_gets_none(search: dict[str, Any], drains: bool, message: str, issue: Any) -> None:
    found = issue(depth="deep", pair_search={"tested": ["gaudi-1", "gaudi-3"], **search})
    assert (found["issued"], found["drains"]) == (False, drains)
    assert [each["message"] for each in found["verdicts"]] == [message]


def test_a_passport_that_a_clock_ahead_signed_is_signed_anew(issue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86400)
    issue()
    monkeypatch.setattr(time, "time", real)
    again = issue()
    assert (again["changed"], again["issued"], again["reason"]) == (True, True, "it was issued in the future")
    assert issue()["changed"] is False
