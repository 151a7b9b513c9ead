# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The controller's half of ``gaudi_credentials``: refuses a folder that Ansible would read as an inventory."""

from __future__ import annotations

from typing import Any, Optional

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._given_secrets import Given
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.plugin_utils.secrets_folder import folder_for


class ActionModule(ActionBase):
    """Say where the folder lies, if one is needed, then run the module."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        try:
            self._settle(task_vars or {})
        except AnsibleActionFail as error:
            # Not raised: the task hides its output, and whoever registers it has to be able to say why.
            return {"failed": True, "msg": str(error)}
        result: dict[str, Any] = self._execute_module(task_vars=task_vars)
        return result

    def _settle(self, task_vars: dict[str, Any]) -> None:
        """Refuse what would show secrets, and settle in which folder missing ones are kept."""
        # A certificate is for the addresses in variables of its host.
        problem = settings_problem(constants.config.get_config_value)
        if problem:
            raise AnsibleActionFail(problem)
        arguments = self._task.args
        given = arguments.get("given") or {}
        if given and not self._task.no_log:
            raise AnsibleActionFail("Secrets are handed over in given: set no_log=true on the task, or they are shown.")
        # Elsewhere than on the controller there is no inventory.
        if self._connection.transport == "local" and isinstance(given, dict):
            missing = Given(given).missing(arguments.get("passwords") or [], bool(arguments.get("certificate")))
            sources = [str(source) for source in task_vars.get("ansible_inventory_sources") or []]
            if missing:
                try:
                    arguments["directory"] = folder_for(str(arguments.get("directory") or ""), sources, missing)
                except Refusal as refusal:
                    raise AnsibleActionFail(str(refusal)) from refusal
            else:
                arguments.pop("directory", None)
