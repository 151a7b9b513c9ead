# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Compares the variables of several roles with their argument specifications, and reports all faults at once."""

from __future__ import annotations

from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._host.facts import refuse_odd_facts
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.arguments import faults
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import SPECIFICATIONS


class ActionModule(ActionBase):
    """Runs on the controller alone."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        roles = self._task.args.get("roles") or []
        unknown = [role for role in roles if role not in SPECIFICATIONS]
        if unknown:
            raise AnsibleActionFail(
                f"'roles' has {', '.join(map(str, unknown))}: give roles of this collection, which are "
                f"{', '.join(SPECIFICATIONS)}."
            )
        if self._task.args.get("facts"):
            try:
                refuse_odd_facts((task_vars or {}).get("ansible_facts"))
            except Refusal as error:
                host = (task_vars or {}).get("inventory_hostname", "this host")
                msg = (
                    f"The facts of {host} cannot be read ({str(error).rstrip('.')}): repair what gathers them, or "
                    f"leave it out with --limit '!{host}'."
                )
                return {**result, "failed": True, "faults": [], "msg": msg}
        found = faults(roles, task_vars or {}, self._templar.template)
        if found:
            result.update(failed=True, faults=found, msg="\n".join(["These variables cannot be used:", *found]))
        return result
