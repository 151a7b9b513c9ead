"""Tasks that only look change nothing, and do not say that they did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(
    path
    for pattern in ("playbooks/**/*.yml", "roles/*/tasks/*.yml", "roles/*/handlers/*.yml")
    for path in ROOT.glob(pattern)
)
BLOCKS = ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always")
#: What the name of a task that only looks begins with.
LOOKS = ("Ask", "Check", "Compare", "Examine", "Find", "Look", "Read", "See", "Wait")
#: Programs, of which Ansible takes each for a change.
PROGRAMS = ("command", "shell", "raw", "script", "expect")


def tasks(node: object) -> Iterator[dict[str, Any]]:
    """The tasks of a file, those in blocks too."""
    if isinstance(node, list):
        for each in node:
            yield from tasks(each)
    elif isinstance(node, dict):
        yield node
        for name in BLOCKS:
            yield from tasks(node.get(name))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_task_that_only_looks_reports_no_change(path: Path) -> None:
    for task in tasks(yaml.safe_load(path.read_text())):
        runs = any(f"ansible.builtin.{program}" in task for program in PROGRAMS)
        looks = str(task.get("name", "")).split(" ")[0] in LOOKS
        if task.get("check_mode") is True or (runs and looks):
            assert task.get("changed_when") is False, task["name"]


def test_there_are_such_tasks() -> None:
    found = [task for path in FILES for task in tasks(yaml.safe_load(path.read_text()))]
    assert len([task for task in found if task.get("check_mode") is True]) >= 5
