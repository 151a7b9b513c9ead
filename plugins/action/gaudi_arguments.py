# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Compares the variables of several roles with their argument specifications, and reports all faults at once."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, Optional

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._host.facts import refuse_odd_facts
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import DEFAULTS, SPECIFICATIONS

try:
    from ansible.template import trust_as_template
except ImportError:
    trust_as_template = None


def shared(default: Any, given: Container[str]) -> bool:
    """Whether a default has a variable in it that several roles share, and that is ``given``."""
    return any(name in given for name in re.findall(r"\bgaudi_\w+", str(default)))


def trusted(value: Any) -> Any:
    """A text of this collection, marked as a template where Ansible (2.19 and newer) asks for that."""
    return trust_as_template(value) if isinstance(value, str) and trust_as_template else value


_NOTHING = object()


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
        faults = [fault for role in roles for fault in self._faults(SPECIFICATIONS[role], task_vars or {})]
        if faults:
            result.update(failed=True, faults=faults, msg="\n".join(["These variables cannot be used:", *faults]))
        return result

    def _faults(self, options: dict[str, Any], task_vars: dict[str, Any]) -> list[str]:
        """What is wrong with the variables of one role, as far as they have a value yet."""
        values = {}
        for name in options:
            default = DEFAULTS.get(name, _NOTHING)
            value = task_vars.get(name, default)
            # What nobody has set is right, and its template would cost the most.
            if value is _NOTHING or (value == default and not shared(default, task_vars)):
                continue
            try:
                values[name] = self._templar.template(trusted(value) if name not in task_vars else value)
            except AnsibleError:
                # It needs what a later task finds out; the role itself looks again.
                continue
        known = {name: option for name, option in options.items() if name in values}
        return list(ArgumentSpecValidator(known).validate(values, validate_role_argument_spec=True).error_messages)
