"""The healing loop on the controller: what reports say to it, its state's file, and the work that follows from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import controller, fence, history
from ansible_collections.gaudi3.scale.plugins.module_utils._health.healing import (
    IN_SERVICE,
    REPAIRING,
    TESTING,
    Done,
    Policy,
    Seen,
    Tested,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

ENFORCE = Policy(mode="enforce")
NODES = ["gaudi-1", "gaudi-2"]
Tested.__test__ = False  # type: ignore[attr-defined]  # its name is no test's


def verdict(component: str, action: str, kind: str = "node fault", severity: str = "error") -> dict[str, Any]:
    return {
        "component": component,
        "action": action,
        "kind": kind,
        "severity": severity,
        "message": f"{component}: {action}",
    }


def report(*verdicts: dict[str, Any]) -> dict[str, Any]:
    return {"verdicts": list(verdicts), "versions": {"driver": "1.23.0-2eae87a"}}


def test_the_strongest_action_counts_for_all_components_that_ask_for_it() -> None:
    found = controller.observe(
        IN_SERVICE,
        "gaudi-1",
        report(verdict("accel1", "reset"), verdict("accel3", "reset"), verdict("accel2 port 7", "retry")),
        10.0,
    )
    assert found == [
        Seen("gaudi-1", "accel1", "node fault", "reset", "accel1: reset", 10.0, ("accel1", "accel3")),
    ]


@pytest.mark.parametrize(("said", "idle"), [({}, False), ({"idle": False}, False), ({"idle": True}, True)])
def test_a_node_is_idle_where_the_report_says_so(said: dict[str, bool], idle: bool) -> None:
    (found,) = controller.observe(IN_SERVICE, "gaudi-1", {**report(verdict("accel2 port 8", "retry")), **said}, 10.0)
    assert isinstance(found, Seen)
    assert (found.action, found.idle) == ("retry", idle)


def test_only_faults_of_the_node_that_ask_for_a_step_do_anything() -> None:
    said = report(
        verdict("accel1", "watch"),
        verdict("node", "configure"),
        verdict("accel2", "reset", severity="warning"),
        verdict("accel3", "free", kind="user fault"),
    )
    (found,) = controller.observe(IN_SERVICE, "gaudi-1", said, 10.0)
    assert isinstance(found, Seen)
    assert (found.kind, found.component) == ("user fault", "accel3")
    assert controller.observe(TESTING, "gaudi-1", said, 10.0) == [Tested("gaudi-1", True, 10.0)]


def test_a_node_that_could_not_be_read_is_neither_returned_nor_blamed() -> None:
    assert controller.observe(TESTING, "gaudi-1", {"verdicts": [], "versions": {}}, 10.0) == []


def test_work_follows_from_the_states_file_alone() -> None:
    fleet = controller.restore(None, NODES, [])
    seen = Seen("gaudi-2", "accel1", "node fault", "reset", "accel1: reset", 100.0, ("accel1", "accel0"))
    fleet, _decisions = controller.advance(fleet, [seen], 101.0, ENFORCE)
    again = controller.restore(controller.dump(fleet), NODES, [])
    expected = {
        "gaudi-2": {
            "step": "reset",
            "components": ["accel1", "accel0"],
            "cards": [0, 1],
            "reason": "accel1: reset",
        }
    }
    assert controller.work(again, ENFORCE) == expected
    assert controller.work(again, Policy()) == {}, "in shadow mode nothing is done"
    assert controller.out_of_service(again) == {
        "gaudi-2": {"state": REPAIRING, "step": "reset", "reason": "accel1: reset"}
    }
    after, _decisions = controller.advance(again, [Done("gaudi-2", True)], 110.0, ENFORCE)
    assert controller.states(after) == {IN_SERVICE: ["gaudi-1"], REPAIRING: [], TESTING: ["gaudi-2"], "out": []}


def test_nodes_come_and_go_with_the_inventory_and_spares_stay_known() -> None:
    fleet = controller.restore(None, [*NODES, "gaudi-3"], ["gaudi-3"])
    assert (sorted(fleet.nodes), fleet.spares) == (["gaudi-1", "gaudi-2", "gaudi-3"], ["gaudi-3"])
    later = controller.restore(controller.dump(fleet), ["gaudi-1", "gaudi-4"], ["gaudi-4"])
    assert (sorted(later.nodes), later.spares) == (["gaudi-1", "gaudi-4"], ["gaudi-4"])


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 2}', '{"schema": 1, "nodes": {"a": {"odd": 1}}}'])
def test_a_state_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="move its file away"):
        controller.restore(text, NODES, [])


def test_the_record_is_bounded() -> None:
    fleet = controller.restore(None, NODES, [])
    fleet.record = [{"at": float(number), "node": "gaudi-1"} for number in range(controller.RECORD_LIMIT + 10)]
    kept = json.loads(controller.dump(fleet))["record"]
    assert (len(kept), kept[0]["at"]) == (controller.RECORD_LIMIT, 10.0)


def test_the_history_keeps_the_newest_lines_and_survives_torn_ones(tmp_path: Any) -> None:
    folder = str(tmp_path / "health")
    assert history.entries(folder) == []
    history.append([{"at": number, "what": "out", "reason": "x" * 600} for number in range(history.LIMIT + 5)], folder)
    with (tmp_path / "health/history.jsonl").open("a") as stream:
        stream.write('{"at": 12')
    found = history.entries(folder)
    assert (len(found), found[0]["at"], len(found[0]["reason"])) == (history.LIMIT, 5, 500)
    history.append([{"at": 7777, "what": "in service"}], folder)
    assert history.entries(folder, 1) == [{"at": 7777, "what": "in service"}]
    assert len(history.entries(folder)) == history.LIMIT
    assert history.entries(folder, 0) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_a_fence_that_cannot_be_read_is_a_fence(text: str, tmp_path: Any) -> None:
    assert fence.read(str(tmp_path)) is None
    (tmp_path / "fence.json").write_text(text)
    found = fence.read(str(tmp_path))
    assert found is not None
    assert "its fence cannot be read" in fence.refusal(found)
