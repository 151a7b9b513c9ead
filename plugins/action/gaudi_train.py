# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The waiting half of ``gaudi_train``: the module starts a job, this watches it from the controller.

The node is only asked now and then (by ``gaudi_train_info``), so a broken connection or an interrupted
controller costs the job nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Optional

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.gaudi3.scale.plugins.module_utils import _traces
from ansible_collections.gaudi3.scale.plugins.module_utils._health import admission
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import secret as job_secret
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.answers import JobAnswer, harmless
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.secrets import secret_of_arguments
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.status import progress_line
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm.queue import QUEUED, UNKNOWN

display = Display()

#: States in which there is something to wait for; a Slurm that does not answer will.
AWAITED = ("running", QUEUED, UNKNOWN)
#: Seconds that a node's share of a job gets to end by itself, once the job has ended on another node.
GRACE = 30.0


def why_stop(job: JobAnswer, waited: float, timeout: float, ended_on: Optional[str]) -> Optional[str]:
    """Why to stop waiting for a job that still runs; None to go on."""
    if ended_on is not None and waited >= GRACE:
        return (
            f"Job {job.name} ended on {ended_on}, without which it cannot go on, but its unit still runs here: look "
            f"at {ended_on} and run the task again, or stop the job with state=stopped."
        )
    if timeout and waited >= timeout:
        is_now = "is still queued in Slurm" if job.state == QUEUED else f"still runs{progress(job)}"
        if job.state == UNKNOWN:
            is_now = f"has an unknown state ({printable(job.ending, 500).rstrip('.')})"
        return (
            f"Job {job.name} {is_now} after {timeout:.0f} seconds of waiting, and was left running: run the task again "
            "to wait on, or raise 'timeout'."
        )
    return None


def progress(job: JobAnswer) -> str:
    """Where a job is, for use behind a word of a sentence; nothing where a script of the user's does not say it."""
    status = job.status
    if status is not None and status.max_steps:
        return f" at step {status.step or 0} of {status.max_steps}"
    if status is not None and status.step:
        return f" at step {status.step}"
    if job.missing:
        return f" and waits for {', '.join(job.missing)}"
    return "" if job.runs_command else " before its first step"


def problem(job: JobAnswer) -> Optional[str]:
    """Why a job which no longer runs is not what was waited for; None when it is finished."""
    name, state, status = job.name, job.state, job.status
    if state in ("finished", "spare"):
        return None
    if state == "failed":
        what = f"job {job.slurm['job']} of Slurm" if job.slurm else "its unit"
        reason = (status.error if status is not None else "") or f"{what} ended with {job.ending}"
        return (
            f"Job {name} failed on this node{progress(job)}: {reason.rstrip('.')}; the last lines of its "
            "log are in 'log'."
        )
    if state == "absent":
        return f"There is no job {name} on this node to wait for: start it with state=started."
    why = status.interruption if status is not None and state == "interrupted" else ""
    return (
        f"Job {name} is {state} on this node{progress(job)}, but not finished{f' ({why})' if why else ''}: run the "
        "task again to continue it."
    )


def line_of(host: str, job: JobAnswer) -> Optional[str]:
    """What is shown of a job that is waited for; None where there is nothing to show."""
    if job.state == QUEUED:
        reason = job.slurm.get("reason")
        return printable(f"{host}: queued in Slurm as job {job.slurm.get('job')}{f' ({reason})' if reason else ''}")
    line = f"{host}: waits for {', '.join(job.missing)}" if job.missing else progress_line(host, job.status)
    return None if line is None else printable(line)


class ActionModule(ActionBase):
    """Run the module, and with state=finished or ended wait for the job."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        # The addresses of a job that is started are variables of other nodes.
        unsafe = settings_problem(constants.config.get_config_value)
        if unsafe and arguments.get("state") not in ("stopped", "absent"):
            return {"failed": True, "msg": unsafe}
        # Asked here, as a module's call with all its options stands in the node's journal.
        secret = secret_of_arguments(arguments)
        if secret is not None:
            return {"failed": True, "msg": secret}
        given = arguments.get("passports")
        if isinstance(given, Mapping) and given.get("mode") != admission.OFF:
            name = str(task_vars.get("inventory_hostname", ""))
            arguments["passports"] = {**given, **admission.of_the_controller(given, name, int(time.time()))}
        trace = _traces.valid(os.environ.get(_traces.VARIABLE))
        if trace:
            arguments.setdefault("trace_parent", trace)
        fault = self._give_secret(arguments, task_vars)
        if fault:
            return {"failed": True, "msg": fault}
        result: dict[str, Any] = harmless(
            self._execute_module(module_name="gaudi3.scale.gaudi_train", module_args=arguments, task_vars=task_vars)
        )
        if "job" not in result and (result.get("failed") or result.get("unreachable")):
            return result
        try:
            job = JobAnswer.of(result.pop("job", None), self._asked(task_vars))
            result["job"] = job.as_dict()
            waits = arguments.get("state") in ("finished", "ended") and not self._task.check_mode
            if not waits or result.get("failed") or result.get("unreachable"):
                return result
            return self._wait(result, job, arguments, str(task_vars.get("inventory_hostname", "node")), task_vars)
        except Refusal as error:
            return {**result, "failed": True, "msg": str(error)}

    def _asked(self, task_vars: Mapping[str, Any]) -> str:
        """The node that answers."""
        place = self._task.delegate_to
        return place if isinstance(place, str) else str(task_vars.get("inventory_hostname", "The node"))

    def _give_secret(self, arguments: dict[str, Any], task_vars: Mapping[str, Any]) -> str:
        """Give the module the job's secret in place of the cluster's; why that cannot be, else nothing.

        It is not needed where nothing is started, as in check mode, or by a job with one node. Keeping a new one on the
        controller is no change of the node, so that check mode predicts the same as is done.
        """
        given, directory = str(arguments.pop("secret", None) or ""), str(arguments.pop("secrets_dir", None) or "")
        fault = job_secret.given_fault(given)
        nodes = arguments.get("nodes") or []
        starts = arguments.get("state", "started") in ("started", "finished") and not self._task.check_mode
        # A job of Slurm makes one up on its nodes.
        starts = starts and arguments.get("launcher") != "slurm"
        if fault or not starts or not isinstance(nodes, list) or len(nodes) < 2:
            return fault or ""
        if not given:
            sources = [str(source) for source in task_vars.get("ansible_inventory_sources") or []]
            try:
                given, _made = job_secret.kept(os.path.expanduser(directory), sources, os.environ)
            except (Refusal, OSError) as error:
                return str(error)
        arguments["secret"] = job_secret.job_secret(given.strip(), str(arguments.get("name")))
        return ""

    def _wait(
        self,
        result: dict[str, Any],
        job: JobAnswer,
        arguments: Mapping[str, Any],
        host: str,
        task_vars: dict[str, Any],
    ) -> dict[str, Any]:
        interval = max(0.1, float(arguments.get("poll_interval", 5.0)))
        timeout, ended_on = float(arguments.get("timeout", 3600)), arguments.get("ended_on")
        begun = time.monotonic()
        shown: Optional[str] = None
        while job.state in AWAITED:
            line = line_of(host, job)
            if line is not None and line != shown:
                display.display(line)
                shown = line
            reason = why_stop(job, time.monotonic() - begun, timeout, ended_on)
            if reason is not None:
                return {**result, "failed": True, "msg": reason}
            time.sleep(interval)
            look = self._look(arguments, task_vars, lines=0)
            if look.get("failed") or look.get("unreachable"):
                return {**look, "changed": result.get("changed", False), "job": result["job"]}
            job = _only(look, self._asked(task_vars))
            result = {**result, "job": job.as_dict()}
        line = line_of(host, job)
        if line is not None and line != shown and shown is not None:
            display.display(line)
        reason = problem(job)
        if reason is not None:
            look = self._look(arguments, task_vars, lines=int(arguments.get("lines", 20)))
            log = list(_only(look, self._asked(task_vars)).log) if "jobs" in look else []
            return {**result, "failed": True, "msg": reason, "log": log}
        return result

    def _look(self, arguments: Mapping[str, Any], task_vars: dict[str, Any], lines: int) -> dict[str, Any]:
        """Ask the node how its job is; with the same places and tools as the module was given."""
        shared = ("name", "jobs_dir", "unit_dir", "systemctl_executable", "journalctl_executable")
        query = {key: arguments[key] for key in shared if key in arguments}
        query["lines"] = lines
        if arguments.get("peers"):
            query["peers"] = arguments["peers"]
        answer: dict[str, Any] = harmless(
            self._execute_module(module_name="gaudi3.scale.gaudi_train_info", module_args=query, task_vars=task_vars)
        )
        return answer


def _only(look: Mapping[str, Any], node: str) -> JobAnswer:
    """The job that was asked for; Refusal where the answer has none."""
    jobs = look.get("jobs")
    return JobAnswer.of(jobs[0] if isinstance(jobs, list) and jobs else jobs, node)
