# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The waiting half of ``gaudi_train``: the module starts a job, this watches it from the controller.

The node is only asked now and then (by ``gaudi_train_info``), so a broken connection or an interrupted
controller costs the job nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Optional

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.gaudi3.scale.plugins.module_utils._health import admission
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import secret_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.text import progress_line

display = Display()

#: Seconds that a node's share of a job gets to end by itself, once the job has ended on another node.
GRACE = 30.0


def why_stop(job: Mapping[str, Any], waited: float, timeout: float, ended_on: Optional[str]) -> Optional[str]:
    """Why to stop waiting for a job that still runs; None to go on."""
    if ended_on is not None and waited >= GRACE:
        return (
            f"Job {job['name']} ended on {ended_on}, without which it cannot go on, but its unit still runs here: look "
            f"at {ended_on} and run the task again, or stop the job with state=stopped."
        )
    if timeout and waited >= timeout:
        return (
            f"Job {job['name']} still runs{progress(job)} after {timeout:.0f} seconds of waiting, and was left "
            "running: run the task again to wait on, or raise 'timeout'."
        )
    return None


def progress(job: Mapping[str, Any]) -> str:
    """Where a job is, for use behind a word of a sentence; nothing where a script of the user's does not say it."""
    status = job.get("status") or {}
    if status.get("max_steps"):
        return f" at step {status.get('step')} of {status['max_steps']}"
    if status.get("step"):
        return f" at step {status['step']}"
    absent = job.get("missing")
    if absent:
        return f" and waits for {', '.join(absent)}"
    return "" if job.get("command") else " before its first step"


def problem(job: Mapping[str, Any]) -> Optional[str]:
    """Why a job which no longer runs is not what was waited for; None when it is finished."""
    name, state = job["name"], job["state"]
    if state in ("finished", "spare"):
        return None
    if state == "failed":
        reason = (job.get("status") or {}).get("error") or f"its unit ended with {job.get('ending')}"
        return (
            f"Job {name} failed on this node{progress(job)}: {str(reason).rstrip('.')}; the last lines of its "
            "log are in 'log'."
        )
    if state == "absent":
        return f"There is no job {name} on this node to wait for: start it with state=started."
    why = (job.get("status") or {}).get("interruption") if state == "interrupted" else None
    return (
        f"Job {name} is {state} on this node{progress(job)}, but not finished{f' ({why})' if why else ''}: run the "
        "task again to continue it."
    )


def _without_log(job: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job.items() if key != "log"}


class ActionModule(ActionBase):
    """Run the module, and with state=finished or ended wait for the job."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        environment = arguments.get("environment")
        # Asked here, as a module's call with all its options stands in the node's journal.
        secret = secret_problem(environment) if isinstance(environment, Mapping) else None
        if secret is not None:
            return {"failed": True, "msg": secret}
        given = arguments.get("passports")
        if isinstance(given, Mapping) and given.get("mode") != admission.OFF:
            name = str(task_vars.get("inventory_hostname", ""))
            arguments["passports"] = {**given, **admission.of_the_controller(given, name, int(time.time()))}
        result: dict[str, Any] = self._execute_module(
            module_name="gaudi3.scale.gaudi_train", module_args=arguments, task_vars=task_vars
        )
        if arguments.get("state") not in ("finished", "ended") or self._task.check_mode:
            return result
        if result.get("failed") or result.get("unreachable") or "job" not in result:
            return result
        return self._wait(result, arguments, str(task_vars.get("inventory_hostname", "node")), task_vars)

    def _wait(
        self, result: dict[str, Any], arguments: Mapping[str, Any], host: str, task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        interval = max(0.1, float(arguments.get("poll_interval", 5.0)))
        timeout, ended_on = float(arguments.get("timeout", 3600)), arguments.get("ended_on")
        begun = time.monotonic()
        shown: Optional[str] = None
        while result["job"]["state"] == "running":
            absent = result["job"].get("missing")
            line = f"{host}: waits for {', '.join(absent)}" if absent else progress_line(host, result["job"]["status"])
            if line is not None and line != shown:
                display.display(line)
                shown = line
            reason = why_stop(result["job"], time.monotonic() - begun, timeout, ended_on)
            if reason is not None:
                return {**result, "failed": True, "msg": reason}
            time.sleep(interval)
            look = self._look(arguments, task_vars, lines=0)
            if look.get("failed") or look.get("unreachable"):
                return {**look, "changed": result.get("changed", False), "job": result["job"]}
            result = {**result, "job": _without_log(look["jobs"][0])}
        line = progress_line(host, result["job"]["status"])
        if line is not None and line != shown and shown is not None:
            display.display(line)
        reason = problem(result["job"])
        if reason is not None:
            look = self._look(arguments, task_vars, lines=int(arguments.get("lines", 20)))
            log = look["jobs"][0]["log"] if "jobs" in look else []
            return {**result, "failed": True, "msg": reason, "log": log}
        return result

    def _look(self, arguments: Mapping[str, Any], task_vars: dict[str, Any], lines: int) -> dict[str, Any]:
        """Ask the node how its job is; with the same places and tools as the module was given."""
        shared = ("name", "jobs_dir", "unit_dir", "systemctl_executable", "journalctl_executable")
        query = {key: arguments[key] for key in shared if key in arguments}
        query["lines"] = lines
        if arguments.get("peers"):
            query["peers"] = arguments["peers"]
        answer: dict[str, Any] = self._execute_module(
            module_name="gaudi3.scale.gaudi_train_info", module_args=query, task_vars=task_vars
        )
        return answer
