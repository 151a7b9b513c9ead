# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The roles' variables on the host of a task, as action plugins read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem

from .role_tasks import VARIABLES
from .role_values import RoleValues


def host_values(action: ActionBase, task_vars: Mapping[str, Any]) -> RoleValues:
    """Defaults of all roles, below what the host has, evaluated by the task's own templar."""

    def template(value: Any, variables: dict[str, Any]) -> Any:
        action._templar.available_variables = variables
        return action._templar.template(value)

    problem = settings_problem(constants.config.get_config_value)
    return RoleValues({**VARIABLES, **task_vars, "gaudi_settings_problem": problem}, template)
