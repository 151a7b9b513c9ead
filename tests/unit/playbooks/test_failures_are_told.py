"""A task that is made to fail says why: where its module did not fail, nobody has written a sentence.

Ansible says "Unknown error." then. What is found is demanded by a task of its own, which has the sentence.
"""

from __future__ import annotations

from typing import Any

import pytest

from .test_decided_for_all import all_tasks


def invents(task: dict[str, Any]) -> bool:
    """Whether a task fails where its module does not."""
    condition = task.get("failed_when", False)
    return condition is not False and " is failed" not in str(condition)


def test_no_task_fails_without_a_sentence() -> None:
    assert [(path, task["name"]) for path, task in all_tasks() if invents(task)] == []


@pytest.mark.parametrize(
    ("condition", "found"),
    [("not it.issued", True), ("it is failed and it.down is not defined", False), (False, False)],
)
def test_a_failure_without_a_sentence_is_found(condition: object, found: bool) -> None:
    assert invents({"failed_when": condition}) is found
