"""When the rounds of the playbook heal end, and whose word counts in them."""

from __future__ import annotations

from typing import Any

import pytest

from .jinja import evaluate, holds, load

ROUND = {task["name"]: task for task in load("playbooks/tasks/heal-round.yml")}
PLAN: dict[str, Any] = {"work": {}, "decisions": [], "give_back": ["gaudi-1"], "out": {}}


@pytest.mark.parametrize(
    ("work", "decisions", "expected"),
    [
        ([], [], False), (["gaudi-1"], [], True), (["gaudi-2"], [], False), (["gaudi-2", "gaudi-1"], [], True),
        ([], ["test"], False), (["gaudi-2"], ["reset"], True),
    ],
)  # fmt: skip
def test_no_round_follows_for_the_work_of_nodes_that_left_the_play(
    work: list[str], decisions: list[str], expected: bool
) -> None:
    """Work of a node that failed stays due, and would keep the others in rounds without an end."""
    plan = {
        **PLAN,
        "work": {name: {"step": "reset"} for name in work},
        "decisions": [{"do": each} for each in decisions],
    }
    given = {"_heal_plan": plan, "_heal_ends": {"decisions": []}, "ansible_play_hosts": ["gaudi-1"]}
    assert holds([ROUND["Go on"]["when"]], ansible_check_mode=False, **given) is expected


def test_only_a_node_that_is_given_back_names_jobs_that_ended() -> None:
    task = ROUND["Start again what ended with a node that is back"]
    answers = {"gaudi-1": ["demo", "../x", 5], "gaudi-2": ["other"], "gaudi-3": None}
    hostvars = {name: {"_heal_given": {"ended": ended}} for name, ended in answers.items()}
    given = {"_heal_plan": {**PLAN, "give_back": ["gaudi-1", "gaudi-4"]}, "hostvars": hostvars,
             "ansible_play_hosts": list(answers), "inventory_hostname": "gaudi-2"}  # fmt: skip
    asked = evaluate(task["gaudi3.scale.gaudi_fence"]["resume"], **{**task["vars"], **given})
    assert asked == {"demo": ["gaudi-1"]}
