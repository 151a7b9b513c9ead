"""Which nodes start again what ended with a node that is back from its upgrade."""

from __future__ import annotations

from typing import Any

import pytest

from .jinja import evaluate, load

TASK = {task["name"]: task for task in load("playbooks/tasks/upgrade-unfence.yml")}[
    "Start again on the others what ended with it"
]
LOOK: dict[str, Any] = {"versions": {"system": "Ubuntu 24.04"}, "cards": 8, "fence": None, "jobs": [], "held": []}
FENCE = {"by": "person", "reason": "its fan is replaced", "jobs": ["demo"]}
HOSTVARS = {
    "gaudi-1": {"_upgrade_look": LOOK},
    "gaudi-2": {"_upgrade_look": LOOK},
    "gaudi-3": {"_upgrade_look": {**LOOK, "fence": FENCE}},
    "gaudi-4": {"_upgrade_look": {**LOOK, "held": "odd"}},
    "gaudi-5": {},
    "gaudi-6": {"_upgrade_look": LOOK},
}
GIVEN: dict[str, Any] = {
    "groups": {"gaudi": list(HOSTVARS)},
    "hostvars": HOSTVARS,
    "ansible_play_batch": ["gaudi-1", "gaudi-6"],
    "inventory_hostname": "gaudi-1",
    "_upgrade_given": {"ended": ["demo", "../x", 5]},
    "_upgrade_next": {"again": False, "jobs": ["demo", "other"]},
}


def asked(**variables: Any) -> tuple[Any, Any]:
    """What is started again, and on which nodes."""
    given = {**TASK["vars"], **GIVEN, **variables}
    return evaluate(TASK["gaudi3.scale.gaudi_fence"]["resume"], **given), evaluate(TASK["loop"], **given)


def test_nodes_in_service_start_it_and_neither_the_batch_nor_one_that_is_out_or_said_nothing() -> None:
    assert asked() == ({"demo": ["gaudi-1"]}, ["gaudi-2"])


@pytest.mark.parametrize("ended", [[], None, "demo"])
def test_nobody_is_asked_where_no_job_ended_with_it(ended: object) -> None:
    assert asked(_upgrade_given={"ended": ended}) == ({}, [])


def test_a_run_that_continues_another_one_starts_what_left_before_it() -> None:
    found = asked(_upgrade_given={"ended": []}, _upgrade_next={"again": True, "jobs": ["demo", "other"]})
    assert found == ({"demo": ["gaudi-1"], "other": ["gaudi-1"]}, ["gaudi-2"])
