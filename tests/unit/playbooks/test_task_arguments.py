"""A task says what it does: its module's options are named, and not one template that has them all.

With Ansible's own defaults such a task prints a warning, too.
"""

from __future__ import annotations

from typing import Any

import pytest

from .test_decided_for_all import all_tasks


def hidden(task: dict[str, Any]) -> list[str]:
    """Modules of a task whose options are a template."""
    return [key for key, value in task.items() if "." in key and isinstance(value, str) and "{{" in value]


def test_every_task_names_its_options() -> None:
    every = list(all_tasks())
    assert len(every) > 400
    # include_tasks and import_playbook take a file's name.
    found = [(path, task["name"], hidden(task)) for path, task in every if hidden(task)]
    assert [each for each in found if "include_tasks" not in each[2][0]] == []


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ({"gaudi3.scale.gaudi_ports": "{{ options }}"}, ["gaudi3.scale.gaudi_ports"]),
        ({"gaudi3.scale.gaudi_ports": {"state": "{{ fabric_ports }}"}}, []),
        ({"ansible.builtin.meta": "end_host", "when": "x == '{{'"}, []),
    ],
)
def test_a_task_without_names_is_found(task: dict[str, Any], found: list[str]) -> None:
    assert hidden(task) == found
