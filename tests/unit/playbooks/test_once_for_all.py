"""What is done once for all hosts is done by the first of them: no condition may be about that one alone.

Blocks, `import_role` and `import_tasks` hand their conditions to every task in them; an include does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .jinja import ROOT

PAGES = sorted([*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")])
PARTS = ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always")
#: Conditions of such tasks, which are the same on all hosts: of the command, of what was answered for all of them at
#: once, or of all that they answered.
OF_ALL = {
    "(_trainer_built | default({})).path is not defined",
    "lookup('gaudi3.scale.plan', 'trainer_builds')",
    "ansible_run_tags | intersect(['all', 'train', 'preflight']) | length > 0 and 'train' not in ansible_skip_tags",
    "_fabric_remarks | length > 0",
    "_pytorch_tarballs != ''",
    "_tuning_remarks | length > 0",
    # How far the job is, the head says for all nodes.
    "_trainer_progress.done and not _trainer_progress.finished",
}
#: Playbooks that refuse settings once, which are of the run; those of a role may be of one host.
REFUSING = {f"playbooks/{name}.yml" for name in ("bmc", "doctor", "heal", "health", "tasks/pair-search", "upgrade")}


def listed(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value])]


def imported(task: dict[str, Any], path: Path) -> Path | None:
    """The file that a task puts in its own place, where there is one."""
    role, file = task.get("ansible.builtin.import_role"), task.get("ansible.builtin.import_tasks")
    if isinstance(role, dict):
        return ROOT / "roles" / role["name"].rpartition(".")[2] / "tasks" / f"{role.get('tasks_from', 'main')}.yml"
    name = file["file"] if isinstance(file, dict) else file
    return None if name is None else path.parent / str(name)


def tasks(entries: Any, path: Path, inherited: tuple[str, ...] = ()) -> Iterator[tuple[Path, dict[str, Any], Any]]:
    """Each task that is done once, its file and its conditions."""
    for task in entries if isinstance(entries, list) else ():
        conditions = (*inherited, *(listed(task["when"]) if "when" in task else ()))
        if task.get("run_once"):
            yield path.relative_to(ROOT), task, conditions
        if (there := imported(task, path)) is not None:
            yield from tasks(yaml.safe_load(there.read_text()), there, conditions)
        for part in PARTS:
            yield from tasks(task.get(part), path, conditions)


def once(entries: Any, path: Path) -> Iterator[tuple[str, str]]:
    """Each condition of a task that is done once, behind the file and the name of the task."""
    for place, task, conditions in tasks(entries, path):
        yield from ((f"{place}: {task['name']}", each) for each in conditions)


def test_no_condition_of_what_is_done_once_is_about_the_first_host_alone() -> None:
    found = {each for path in PAGES for each in once(yaml.safe_load(path.read_text()), path)}
    assert {condition for _place, condition in found} >= OF_ALL
    assert [each for each in sorted(found) if each[1] not in OF_ALL] == []


def test_what_a_role_refuses_is_not_about_the_first_host_alone() -> None:
    found = [each for path in PAGES for each in tasks(yaml.safe_load(path.read_text()), path)]
    assert {str(place) for place, task, _conditions in found if "ansible.builtin.assert" in task} == REFUSING


def test_conditions_are_found_wherever_they_stand() -> None:
    page = [
        {
            "name": "A play", "tasks": [
                {"name": "b", "when": "x", "block": [{"name": "a", "run_once": True, "when": ["y", "z"]}]},
                {
                    "name": "r", "when": "w",
                    "ansible.builtin.import_role": {"name": "gaudi3.scale.pytorch", "tasks_from": "tarballs"},
                },
            ],
        },
    ]  # fmt: skip
    tarballs = "roles/pytorch/tasks/tarballs.yml: Demand the same tarball on all nodes"
    assert list(once(page, ROOT / "a.yml")) == [
        *(("a.yml: a", each) for each in "xyz"), (tarballs, "w"), (tarballs, "_pytorch_tarballs != ''"),
    ]  # fmt: skip
