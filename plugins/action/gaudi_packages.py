# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Installs packages with Ansible's own module for them, and judges in a dry run what that cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._host.packages import (
    ARGUMENT_SPEC,
    Wanted,
    query,
    version_of,
)
from ansible_collections.gaudi3.scale.plugins.plugin_utils.acting import acted, as_task


class ActionModule(ActionBase):
    """All in one task: each costs the controller a process for each host."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        _result, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        self._vars = dict(task_vars or {})
        wanted = Wanted(given["name"], given["cache_valid_time"], given["new_source"], given["start"])
        if not given["ask_version"]:
            return self._installed(wanted)
        version = self._version(wanted)
        if version:
            return {"changed": False, "version": version}
        answer = self._installed(wanted)
        return {**answer, "version": "" if answer.get("failed") else self._version(wanted)}

    def _installed(self, wanted: Wanted) -> dict[str, Any]:
        options = {"name": list(wanted.names), "state": "present"}
        # The module finds out which manager the host has.
        defaults = [*(self._task.module_defaults or ()), {"ansible.builtin.apt": wanted.apt()}]
        answer = acted(self, "ansible.builtin.package", options, self._vars, module_defaults=defaults)
        # Where the lists are fresh, the run itself would fetch none either, and what they lack stays unknown.
        if answer.get("failed") and self._task.check_mode and not answer.get("unreachable"):
            lists = {} if wanted.new_source else self._asked("ansible.builtin.find", wanted.lists())
            if wanted.may_come(str(answer.get("msg")), lists):
                return {"changed": True}
        return answer

    def _version(self, wanted: Wanted) -> str:
        facts = self._vars.get("ansible_facts") or {}
        command = query(str(facts.get("os_family")), wanted.names[0])
        if command is None:
            return ""
        return version_of(self._asked("ansible.builtin.command", {"argv": command}).get("stdout"))

    def _asked(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """What a module that changes nothing answers, in a dry run, too."""
        with as_task(self, check_mode=False):
            answer: dict[str, Any] = self._execute_module(
                module_name=module, module_args=dict(options), task_vars=self._vars
            )
        return answer
