# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The controller's half of ``trainer_install``: reads the wheel, and brings it over when the node needs it."""

from __future__ import annotations

import os
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.wheel_options import with_wheel

MODULE = "gaudi3.scale.trainer_install"


class ActionModule(ActionBase):
    """Ask the node first, as most of the time it has the wheel already."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if boolean(arguments.get("remote_src", False)):
            return self._module(arguments, task_vars)
        wheel = os.path.expanduser(str(arguments.get("wheel", "")))
        try:
            arguments = with_wheel(arguments)
        except Refusal as error:
            raise AnsibleActionFail(str(error)) from error
        result = self._module(arguments, task_vars)
        if not result.pop("needs_wheel", False):
            return result
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()
        remote = self._connection._shell.join_path(self._connection._shell.tmpdir, os.path.basename(wheel))
        self._transfer_file(wheel, remote)
        self._fixup_perms2((self._connection._shell.tmpdir, remote))
        try:
            return self._module({**arguments, "wheel": remote, "remote_src": True}, task_vars)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _module(self, arguments: dict[str, Any], task_vars: Optional[dict[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
        return result
