# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The controller's half of ``gaudi_doctor_info``: sends the examination along, as a node need not have the trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
        answer: dict[str, Any] = self._execute_module(
            module_name=MODULE, module_args={**self._task.args, "package": package}, task_vars=task_vars
        )
        host = str((task_vars or {}).get("inventory_hostname", "the node"))
        return answer if answer.get("failed") or answer.get("unreachable") else read(answer, host)


def read(answer: dict[str, Any], host: str) -> dict[str, Any]:
    """The answer of a node, or the refusal of one that has no report in it."""
    if isinstance(answer.get("report"), Mapping) and isinstance(answer.get("summary"), str):
        return answer
    lacking = "report" if not isinstance(answer.get("report"), Mapping) else "summary"
    msg = (
        f"{host} answers without a {lacking}, where the result of an examination is expected: look at what answers "
        "there (Python, the collection's modules), and run again."
    )
    return {"changed": False, "failed": True, "msg": msg}
