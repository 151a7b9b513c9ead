# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What an action plugin does as another task: with other options of its own task, or by another plugin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.plugins.action import ActionBase


@contextlib.contextmanager
def as_task(action: Any, **changes: Any) -> Iterator[None]:
    """Within, the plugin's task has these values of its keywords, such as ``check_mode``."""
    task = action._task
    action._task = task.copy()
    try:
        for name, value in changes.items():
            setattr(action._task, name, value)
        yield
    finally:
        action._task = task


def acted(action: ActionBase, name: str, args: Mapping[str, Any], task_vars: Any, **changes: Any) -> dict[str, Any]:
    """What another action plugin does with these options on the same host, as a task with these keywords."""
    with as_task(action, args=dict(args), **changes):
        other = action._shared_loader_obj.action_loader.get(
            name,
            task=action._task,
            connection=action._connection,
            play_context=action._play_context,
            loader=action._loader,
            templar=action._templar,
            shared_loader_obj=action._shared_loader_obj,
        )
        try:
            answer: dict[str, Any] = other.run(task_vars=task_vars)
        finally:
            other.cleanup()
    return answer
