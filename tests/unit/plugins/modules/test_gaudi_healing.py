"""gaudi_healing: the state's file before any work, check mode, shadow mode, and what it refuses."""

from __future__ import annotations

import errno
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


def fenced(since: float, by: str = "healing", **more: Any) -> dict[str, Any]:
    fence = {"reason": "accel1: broken", "step": "isolate", "by": by, "since": since}
    return {**SOUND, "fence": fence, **more}


def test_a_node_that_another_record_fenced_waits_for_a_person_and_a_test(heal: Any, tmp_path: Path) -> None:
    """From an empty folder, or by a second controller: nothing that was not tested comes back."""
    names = [f"gaudi-{number}" for number in range(1, 5)]
    seen = {"gaudi-2": fenced(7.0)}
    first = heal(nodes=names, spares=["gaudi-2"], fences=seen, reports={**seen, "gaudi-1": SICK})
    assert did(first) == [("gaudi-2", "take over"), ("gaudi-1", "hold")], "and the brake counts it"
    assert (first["give_back"], first["due"], first["out"]["gaudi-2"]["state"]) == ([], True, "out")
    assert "give it back with health_released: accel1: broken" in first["decisions"][0]["reason"]
    again = heal(nodes=names, fences=seen, reports=seen)
    assert (again["decisions"], again["give_back"], again["due"]) == ([], [], False)
    released = heal(nodes=names, released=["gaudi-2"], fences=seen)
    assert (did(released), released["testing"]) == ([("gaudi-2", "test")], ["gaudi-2"])
    sick = heal(nodes=names, reports={"gaudi-2": {**SICK, "fence": seen["gaudi-2"]["fence"]}}, tests=True)
    assert did(sick) == [("gaudi-2", "isolate"), ("gaudi-2", "call a person")]
    heal(nodes=names, released=["gaudi-2"])
    back = heal(nodes=names, reports=seen, tests=True)
    assert (did(back), back["give_back"]) == ([("gaudi-2", "return")], ["gaudi-2"])
    cut_off = heal(nodes=names, fences=seen, reports=seen)
    assert (cut_off["decisions"], cut_off["give_back"], cut_off["due"]) == ([], ["gaudi-2"], True)
    other = heal(nodes=names, fences={"gaudi-2": fenced(8.0)})
    assert (did(other), other["give_back"]) == ([("gaudi-2", "take over")], []), "another fence is another matter"
    elsewhere = heal(nodes=names, fences={"gaudi-2": SOUND})
    assert (did(elsewhere), elsewhere["out"]) == ([("gaudi-2", "return")], {})


def test_a_node_that_is_released_in_the_run_that_takes_it_over_is_tested(heal: Any) -> None:
    seen = {"gaudi-2": fenced(7.0)}
    both = heal(released=["gaudi-2"], fences=seen, reports=seen, taken_at=time.time())
    assert (did(both), both["testing"]) == ([("gaudi-2", "take over"), ("gaudi-2", "test")], ["gaudi-2"])
    assert both["give_back"] == []


def test_a_node_that_a_person_fenced_is_left_alone(heal: Any) -> None:
    for fence in (fenced(7.0, "person"), fenced(7.0, "x"), {**SOUND, "fence": "odd"}):
        seen = {"gaudi-2": {**fence, "verdicts": [FAULT]}}
        left = heal(fences=seen, reports=seen)
        assert (left["decisions"], left["out"], left["due"], left["give_back"]) == ([], {}, False, [])


def test_a_clock_that_was_ahead_stops_nothing(heal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86400)
    heal(reports={"gaudi-2": SICK})
    heal(ended={"gaudi-2": {"ok": True}})
    monkeypatch.setattr(time, "time", real)
    planned = heal(check=True)
    first = heal()
    assert planned["told"] == first["told"]
    (said,) = first["told"]
    assert "as the clock was ahead: they are taken as now" in said
    assert heal()["told"] == [], "said once"
    back = heal(reports={"gaudi-2": SOUND}, tests=True, taken_at=first["now"])
    assert did(back) == [("gaudi-2", "return")]
    late = {**FAULT, "action": "retry", "component": "accel1 x"}
    monkeypatch.setattr(time, "time", lambda: real() + 86400)
    assert did(heal(reports={"gaudi-1": {**SICK, "verdicts": [late]}})) == [("gaudi-1", "retry")]
    monkeypatch.setattr(time, "time", real)
    heal()
    monkeypatch.setattr(time, "time", lambda: real() + 130)
    assert did(heal(reports={"gaudi-1": {**SICK, "verdicts": [late]}}, share=1)) == [("gaudi-1", "reset")]


@pytest.mark.parametrize("value", ["x", [], {}, float("nan"), float("inf"), 10**400])
def test_a_state_with_odd_values_is_refused(heal: Any, tmp_path: Path, value: Any) -> None:
    heal(reports={"gaudi-2": SICK})
    path = tmp_path / "fleet.json"
    whole = json.loads(path.read_text())
    whole["nodes"]["gaudi-2"]["left_at"] = value or [1]
    path.write_text(json.dumps(whole))
    assert "move its file away" in heal()["msg"]


def test_a_state_that_cannot_be_read_or_written_is_said_in_a_sentence(
    heal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.json"
    path.write_bytes(b"\xff\xfe{")
    assert heal()["msg"].startswith(f"{path}: the state of the healing loop is not one of this version")
    path.unlink()
    path.mkdir()
    said = f"{path}: the state of the healing loop cannot be read (Is a directory): mend its file."
    assert heal()["msg"] == said
    path.rmdir()

    def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gaudi_healing, "write_file", full)
    failed = heal(reports={"gaudi-2": SICK})
    assert failed["msg"] == (
        f"{path} cannot be written (No space left on device), and nothing is done to a node without it: make room on "
        "this machine, or give another folder as health_directory."
    )


HANG = {
    "job": "demo", "state": "failed", "kind": "late", "certain": True, "nodes": ["gaudi-2"], "at": 0.0,
    "sentence": "Rank 1 on gaudi-2 did not enter all_reduce 7; the other rank waits.",
    "members": ["gaudi-1", "gaudi-2"],
}  # fmt: skip


def reports(**of_the_second: Any) -> dict[str, Any]:
    """What both nodes say: the first has a job that hung, of which it names the second."""
    first = {**SOUND, "host": "gaudi-1", "cards": 8, "hangs": [{**HANG, "at": time.time() - 60}]}
    return {"gaudi-1": first, "gaudi-2": {**SOUND, "host": "gaudi-2", "cards": 8, **of_the_second}}


def test_a_node_that_a_job_names_is_tested_when_it_is_idle_and_returns(heal: Any, tmp_path: Path) -> None:
    why = f"job demo: {HANG['sentence']}"
    busy = heal(reports=reports(idle=False), taken_at=time.time())
    assert (did(busy), busy["out"], busy["suspects"]) == ([("gaudi-2", "suspect")], {}, {"gaudi-2": [why]})
    assert busy["due"] is True and busy["work"] == {}, "it is said"
    assert json.loads((tmp_path / "fleet.json").read_text())["nodes"]["gaudi-2"]["suspected"]["demo"]["sentence"] in why
    again = heal(reports=reports(idle=False), taken_at=time.time())
    assert (did(again), again["changed"], again["due"]) == ([], False, False)
    idle = heal(reports=reports(idle=True), taken_at=time.time())
    assert did(idle) == [("gaudi-2", "test")]
    assert (idle["testing"], idle["examined"], idle["work"]) == (["gaudi-2"], ["gaudi-2"], {})
    assert idle["out"] == {"gaudi-2": {"state": "testing", "step": "examine", "reason": why}}
    off = heal(busy=["gaudi-2"])
    assert (did(off), off["out"], off["suspects"]) == ([("gaudi-2", "put off")], {}, {"gaudi-2": [why]})
    heal(reports=reports(idle=True), taken_at=time.time())
    begun = heal(ended={"gaudi-2": {"ok": True}})
    assert (begun["examined"], begun["changed"]) == (["gaudi-2"], True)
    fence = {"by": "healing", "step": "examine", "since": 7.0}
    passed = heal(reports={"gaudi-2": {**reports()["gaudi-2"], "fence": fence}}, taken_at=begun["now"], tests=True)
    assert did(passed) == [("gaudi-2", "end the suspicion"), ("gaudi-2", "return")]
    assert (passed["suspects"], passed["out"], passed["give_back"]) == ({}, {}, ["gaudi-2"])
    later = heal(reports=reports(idle=True), taken_at=time.time())
    assert (did(later), later["suspects"]) == ([], {}), "that hang is over"


def test_an_examination_makes_suspects_and_takes_nothing_out_and_a_passport_ends_it(heal: Any) -> None:
    quick = heal(examinations=reports(verdicts=[FAULT], idle=True))
    assert (did(quick), list(quick["suspects"]), quick["out"]) == ([("gaudi-2", "suspect")], ["gaudi-2"], {})
    assert heal(examinations=reports(), passed=["gaudi-1"])["changed"] is False
    assert did(heal(examinations=reports(), passed=["gaudi-1", "gaudi-2"])) == [("gaudi-2", "end the suspicion")]
    assert heal(examinations=reports(), passed=["gaudi-1", "gaudi-2"])["changed"] is False


def test_a_person_ends_a_suspicion(heal: Any) -> None:
    heal(examinations=reports())
    assert did(heal(released=["gaudi-2"])) == [("gaudi-2", "end the suspicion")]
    assert heal(released=["gaudi-2"])["changed"] is False
