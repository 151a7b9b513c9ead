# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Decides for all hosts of a run at once, from what ``gaudi_host_plan`` returned of each of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Optional

from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.site import decide


class ActionModule(ActionBase):
    """Runs on the controller alone, once."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        given = task_vars or {}
        registered = str(self._task.args.get("plans"))
        hosts = given.get("ansible_play_hosts_all") or []
        plans = {host: given["hostvars"][host].get(registered) for host in hosts}
        run = Run.of(given.get("ansible_run_tags") or (), given.get("ansible_skip_tags") or ())
        site = decide(plans, frozenset((given.get("groups") or {}).get("gaudi", ())), run.needs_cards)
        if site.problem:
            return {"failed": True, "msg": site.problem}
        return {"changed": False, **{name: value for name, value in asdict(site).items() if name != "problem"}}
