# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The controller's half of ``gaudi_credentials``: refuses a folder that Ansible would read as an inventory."""

from __future__ import annotations

import os
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils.secrets_dir import (
    advice,
    default_folder,
    enclosing_source,
)


class ActionModule(ActionBase):
    """Look where the folder lies, then run the module."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        # Elsewhere than on the controller there is no inventory.
        if self._connection.transport == "local":
            sources = [str(source) for source in (task_vars or {}).get("ansible_inventory_sources") or []]
            directory = os.path.expanduser(str(self._task.args.get("directory") or ""))
            source = enclosing_source(directory, sources) if directory else None
            if source is not None:
                raise AnsibleActionFail(
                    f"{directory} lies in the inventory {source}, where Ansible takes passwords for names of hosts: "
                    f"{advice(directory, default_folder(sources, os.environ))}."
                )
        result: dict[str, Any] = self._execute_module(task_vars=task_vars)
        return result
