# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Events of a run of which only Ansible's own details tell."""

from __future__ import annotations

from typing import Any

#: A play without hosts is one of them, and so is a task that is tried again; of an item that failed, the result of its
#: loop has the sentence.
DETAILS = (
    *("v2_playbook_on_handler_task_start", "v2_playbook_on_no_hosts_matched", "v2_playbook_on_no_hosts_remaining"),
    *("v2_playbook_on_include", "v2_playbook_on_notify", "v2_runner_on_start", "v2_runner_retry"),
    *("v2_runner_on_async_poll", "v2_runner_on_async_ok", "v2_runner_on_async_failed"),
    *("v2_runner_item_on_failed", "v2_runner_item_on_skipped"),
)


def add_detailed_events(callback: Any, default: Any) -> None:
    """Give ``callback`` these events as ``default`` has them, for runs that show details."""
    for name in DETAILS:
        setattr(callback, name, _with_details_alone(name, default))


def _with_details_alone(name: str, default: Any) -> Any:
    def event(self: Any, *given: Any) -> None:
        if self._detailed():
            getattr(default, name)(self, *given)

    return event
