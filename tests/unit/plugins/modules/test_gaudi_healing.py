"""gaudi_healing: the state's file before any work, check mode, shadow mode, and what it refuses."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_healing

FAULT = {
    "component": "accel1",
    "action": "reset",
    "kind": "node fault",
    "severity": "critical",
    "message": "accel1: needs a reset",
}
SICK = {"verdicts": [FAULT], "versions": {"driver": "1.23.0-2eae87a"}}
SOUND = {"verdicts": [], "versions": {"driver": "1.23.0-2eae87a"}}


@pytest.fixture(name="heal")
def healing(run_module: Any, tmp_path: Path) -> Any:
    def run(**more: Any) -> dict[str, Any]:
        given = {"path": str(tmp_path / "fleet.json"), "nodes": ["gaudi-1", "gaudi-2"], "mode": "enforce", **more}
        result: dict[str, Any] = run_module(gaudi_healing, **given)
        return result

    return run


def did(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["node"], each["do"]) for each in result["decisions"]]


def test_a_node_is_repaired_tested_and_returned(heal: Any, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    first = heal()
    assert (first["changed"], first["work"], path.exists()) == (False, {}, False)
    planned = heal(reports={"gaudi-2": SICK, "elsewhere": SICK}, check=True, diff=True)
    assert (planned["changed"], path.exists()) == (True, False)
    assert planned["diff"]["after"] == "gaudi-2: reset: accel1: needs a reset\n"
    decided = heal(reports={"gaudi-2": SICK}, taken_at=time.time())
    assert did(decided) == [("gaudi-2", "reset")]
    assert decided["work"]["gaudi-2"]["components"] == ["accel1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert heal()["work"] == decided["work"], "who was cut off goes on"
    assert heal(ended={"gaudi-2": {"ok": True}}, check=True)["testing"] == ["gaudi-2"]
    ended = heal(ended={"gaudi-2": {"ok": True}})
    assert (did(ended), ended["testing"], ended["work"]) == ([("gaudi-2", "test")], ["gaudi-2"], {})
    assert heal(reports={"gaudi-2": SOUND}, tests=True, check=True)["decisions"] == []
    assert did(heal(reports={"gaudi-2": SOUND}, tests=True, taken_at=ended["now"])) == [("gaudi-2", "return")]
    assert heal()["out"] == {}
    assert heal()["changed"] is False
    assert json.loads(path.read_text())["schema"] == 1


def test_in_shadow_mode_there_is_no_work(heal: Any) -> None:
    said = heal(reports={"gaudi-2": SICK}, mode="shadow")
    assert (did(said), said["work"], said["decisions"][0]["shadow"]) == ([("gaudi-2", "reset")], {}, True)


def test_a_report_that_is_too_old_changes_nothing(heal: Any) -> None:
    old = heal(reports={"gaudi-2": SICK}, taken_at=time.time() - 301)
    assert (old["decisions"], old["changed"]) == ([], False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0}, "share is 0.0: give more than 0 and at most 1, such as 0.1 for a tenth."),
        ({"released": ["gaudi-9"]}, "gaudi-9 is not among the nodes: give names as the inventory has them."),
        ({"path": "/nowhere/fleet.json"}, "There is no folder /nowhere: make it first."),
    ],
)
def test_what_cannot_be_is_refused(heal: Any, options: dict[str, Any], message: str) -> None:
    assert heal(**options)["msg"] == message


def test_a_state_that_is_not_one_is_refused(heal: Any, tmp_path: Path) -> None:
    (tmp_path / "fleet.json").write_text("{}")
    assert "move its file away" in heal()["msg"]
