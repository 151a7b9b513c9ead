"""A plan as this command has it: in a file that is removed, with a number of changes and a form for programs."""

from __future__ import annotations

from pathlib import Path

from gaudi3_deploy.plan import Plan


def test_a_plan_is_counted_and_told_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "plan-1"
    folder.mkdir()
    (folder / "plan").touch()
    lost = {"machines_lost": ["b"], "storage_lost": ["c"]}
    plan = Plan(create=["a"], replace=["b", "c"], adopt=["d"], path=folder / "plan", warnings=["w"], **lost)
    assert (plan.count, plan.changed) == (5, True)
    assert plan.as_dict() == {
        "changes": {"create": ["a"], "update": [], "replace": ["b", "c"], "delete": [], "adopt": ["d"]},
        "nodes_lost": ["b"],
        "storage_lost": ["c"],
        "warnings": ["w"],
    }
    plan.discard()
    assert list(tmp_path.iterdir()) == []
    plan.discard()
    assert not Plan().changed
