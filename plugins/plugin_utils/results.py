# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What Ansible hands to a callback: tasks and their results, and the options that choose among the tasks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ansible import context

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.screen import shown_lines


def part(result: Any, name: str) -> Any:
    """The task, the host or the answer of a result, which ansible-core 2.17 and 2.18 call by other names."""
    return getattr(result, name) if hasattr(result, name) else getattr(result, f"_{name}")


def chosen(given: Mapping[str, Any]) -> list[str]:
    """The options that leave a part of a playbook out, with their values."""
    values = {
        "--tags": [each for each in given.get("tags") or () if each != "all"],
        "--skip-tags": given.get("skip_tags") or (),
        "--start-at-task": [given["start_at_task"]] if given.get("start_at_task") else (),
    }
    return [f"{name} {shlex.quote(','.join(sorted(each)))}" for name, each in values.items() if each]


def is_chosen(task: Any) -> bool:
    """Whether a task runs as the options choose it, and not because it always does."""
    own = set(getattr(task, "tags", None) or ())
    return "always" not in own or bool(own & set(context.CLIARGS.get("tags") or ()))


def is_rescued(task: Any) -> bool:
    """Whether a block goes on behind a failure of the task."""
    child, parent = task, getattr(task, "_parent", None)
    while parent is not None:
        rescue = getattr(parent, "rescue", None)
        behind = [*(rescue or []), *(getattr(parent, "always", None) or [])]
        if rescue and all(each._uuid != child._uuid for each in behind):
            return True
        child, parent = parent, getattr(parent, "_parent", None)
    return False


def with_cause(lines: list[str], result: Any) -> list[str]:
    """The lines, and below them the first cause of an exception, which ansible-core keeps apart from 2.19 on."""
    answer = getattr(result, "result", None) or getattr(result, "_result", None) or {}
    event: Any = getattr(getattr(result, "exception", None), "event", None)
    while getattr(event, "chain", None) is not None:
        event = event.chain.event
    # A list stands in the event as Python writes it.
    known = " ".join(f"{' '.join(lines)} {answer.get('msg')}".split())
    more = [line.strip() for line in shown_lines(getattr(event, "msg", None) or "")]
    return [*lines, *(line for line in more if line and " ".join(line.split()) not in known)]


def said_of(answer: Mapping[str, Any]) -> str:
    """What is said of a host that does not answer; of a loop, what its first such item says."""
    items = [each for each in answer.get("results") or () if isinstance(each, dict) and each.get("unreachable")]
    found = items[0] if items else answer
    return "hidden, as it may hold a secret (no_log)" if "censored" in found else str(found.get("msg") or "")


def name_of(task: Any) -> str:
    """The name of a task without its role, as text that a terminal only shows."""
    name = str(task.get_name()).strip()
    _role, found, rest = name.partition(" : ")
    return printable(rest if found else name)
