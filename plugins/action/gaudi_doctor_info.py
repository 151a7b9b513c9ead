# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The controller's half of ``gaudi_doctor_info``: sends the examination along, as a node need not have the trainer."""

from __future__ import annotations

import os
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.doctor import SOURCES, pack

MODULE = "gaudi3.scale.gaudi_doctor_info"


class ActionModule(ActionBase):
    """Pack the package, then run the module."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        collection = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        try:
            package = pack(os.path.join(collection, SOURCES))
        except (Refusal, OSError) as error:
            raise AnsibleActionFail(str(error)) from error
        result: dict[str, Any] = self._execute_module(
            module_name=MODULE, module_args={**self._task.args, "package": package}, task_vars=task_vars
        )
        return result
