"""Nodes that stand apart from their fleet: verdicts by node, from the figures that some nodes have."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._health.fleet import apart


def outliers(figures: dict[str, dict[str, float]]) -> dict[str, list[dict[str, Any]]]:
    return {node: [finding.as_dict() for finding in found] for node, found in apart(figures).items()}


def test_the_slow_node_is_named_by_each_figure_that_shows_it() -> None:
    fleet = {f"gaudi-{number}": {"all_reduce": 258.0, "all_gather": 256.0 + number % 2} for number in range(10)}
    fleet["gaudi-4"] = {"all_reduce": 200.0, "all_gather": 256.0}
    fleet["gaudi-new"] = {}
    found = outliers(fleet)
    assert list(found) == ["gaudi-4"]
    (verdict,) = found["gaudi-4"]
    assert (verdict["check"], verdict["action"], verdict["drains"]) == ("fleet:all_reduce", "isolate", True)
    assert "200 where the median of 10 is 258" in verdict["message"]


def test_too_few_nodes_or_none_say_nothing() -> None:
    assert outliers({}) == {}
    assert outliers({"gaudi-1": {"all_reduce": 258.0}, "gaudi-2": {"all_reduce": 1.0}}) == {}
