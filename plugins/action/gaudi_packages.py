# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Installs packages with Ansible's own module for them, and judges in a dry run what that cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._host.packages import (
    ARGUMENT_SPEC,
    SOURCES,
    Wanted,
    is_new,
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
        if not wanted.names:
            return {"changed": False}
        if not given["ask_version"]:
            return self._installed(wanted)
        version = self._version(wanted)
        if wanted.met_by(version):
            return {"changed": False, "version": version}
        answer = self._installed(wanted)
        return {**answer, "version": "" if answer.get("failed") else self._version(wanted)}

    def _installed(self, wanted: Wanted) -> dict[str, Any]:
        """Install them; read the sources again where one is newer than the lists, as a run before left it."""
        answer = self._packages(wanted)
        said = str(answer.get("msg"))
        if not answer.get("failed") or answer.get("unreachable"):
            return answer
        if not self._task.check_mode:
            if wanted.new_source or not wanted.unknown(said) or not self._is_new():
                return answer
            return self._packages(replace(wanted, new_source=True))
        if wanted.unbound(said):
            listed = self._asked("ansible.builtin.command", {"argv": wanted.installed()})
            return {"changed": wanted.missing(listed.get("stdout"))}
        return {"changed": True} if wanted.unknown(said) and self._is_fetched(wanted) else answer

    def _packages(self, wanted: Wanted) -> dict[str, Any]:
        options = {"name": list(wanted.names), "state": "present"}
        # The module finds out which manager the host has.
        defaults = [*(self._task.module_defaults or ()), {"ansible.builtin.apt": wanted.apt()}]
        return acted(self, "ansible.builtin.package", options, self._vars, module_defaults=defaults)

    def _is_fetched(self, wanted: Wanted) -> bool:
        """Whether the run itself would read the sources. Otherwise what the lists lack stays unknown."""
        if wanted.new_source or self._asked("ansible.builtin.find", wanted.lists()).get("matched") == 0:
            return True
        return self._is_new()

    def _is_new(self) -> bool:
        return is_new(self._asked("ansible.builtin.find", SOURCES))

    def _version(self, wanted: Wanted) -> str:
        facts = self._vars.get("ansible_facts") or {}
        command = query(str(facts.get("os_family")), wanted.first)
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
