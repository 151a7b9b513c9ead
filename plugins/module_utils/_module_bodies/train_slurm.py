# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_train does with a job of Slurm, on the host that submits it: look, decide, act, tell how it is then."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, Optional

from .._jobs import archives as job_archives
from .._jobs import rules as job_rules
from .._jobs.decision import Decision, decide
from .._jobs.files import SCRIPT, JobError
from .._jobs.node import JobNode, check_venv
from .._jobs.spec import RUNNING
from .._slurm import described, queue
from .._slurm.described import SlurmSpec
from .._slurm.node import EPILOG, SlurmNode, SlurmObserved
from . import train_work

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

#: The option ``slurm``.
OPTIONS: dict[str, dict[str, Any]] = {
    # A number would be one that YAML made of 24:00:00, which the trainer says.
    "time": {"type": "raw", "required": True},
    "cpu": {"type": "int", "required": True},
    "gres": {"type": "str"},
    "partition": {"type": "str"},
    "account": {"type": "str"},
    "qos": {"type": "str"},
    "reservation": {"type": "str"},
    "constraint": {"type": "str"},
    "exclude": {"type": "str"},
    "exclusive": {"type": "bool"},
    "memory": {"type": "str"},
    "options": {"type": "list", "elements": "str"},
    "setup": {"type": "list", "elements": "str"},
    "requeue": {"type": "bool"},
    "allow_partial_nodes": {"type": "bool"},
    "interface": {"type": "str"},
}
SLURM, SYSTEMD = "slurm", "systemd"
#: For how many seconds a status counts as that of a job which runs; a trainer writes one every few steps.
HEARD = 300
AT_WORK = ("starting", RUNNING)


def is_asked_for(module: AnsibleModule) -> bool:
    """Whether it is about a job of Slurm: by its launcher, else by how the job was started; ValueError if unclear."""
    params = module.params
    starts = params["state"] in ("started", "finished")
    if params["launcher"] == SLURM:
        if starts and params["slurm"] is None:
            raise ValueError("launcher is slurm, and slurm is not given: set slurm.time and slurm.cpu.")
        return True
    if params["slurm"] is not None and starts:
        raise ValueError("slurm is given, and launcher is not slurm: set launcher to slurm, or leave slurm out.")
    if params["launcher"] == SYSTEMD or starts:
        return False
    job_rules.check({"name": params["name"]})
    return queue.is_of_slurm(SlurmNode.of(module).jobs.control(params["name"]).record())


def refuse_live(module: AnsibleModule) -> None:
    """Refuse to take a job for one of units that is queued or runs in Slurm; JobError where Slurm does not say."""
    name = module.params["name"]
    node = SlurmNode.of(module)
    if not queue.is_of_slurm(node.jobs.control(name).record()):
        return
    found = node.observe(name)
    if found.job is not None and found.job.live:
        raise JobError(
            f"Job {name} is {found.state} in Slurm as job {found.job.number}: give launcher=slurm, or stop it first "
            "with that and state=stopped."
        )


class Work(train_work.Work[SlurmObserved]):
    """One task on one job of Slurm."""

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        self.node = SlurmNode.of(module)
        self.spec: Optional[SlurmSpec] = None
        self.script: Optional[str] = None
        """The batch script; None where nothing is submitted, or the trainer is not there to write it."""

    @property
    def directory(self) -> str:
        """The job's folder."""
        return self.node.directory(self.name)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        return self.node.jobs.alone()

    def _observe(self) -> SlurmObserved:
        return self.node.observe(self.name)

    def _describe(self) -> None:
        params = self.params
        mounted = any(os.path.ismount(path) for path in (params["jobs_dir"], os.path.dirname(params["jobs_dir"])))
        problem = described.folder_problem(params["jobs_dir"], mounted)
        if problem:
            raise ValueError(problem)
        self.spec = SlurmSpec.of(params)

    def _look(self) -> tuple[SlurmObserved, Decision]:
        """The job as it is, and what is done about it."""
        asked = self.spec.job.user if self.spec is not None else None
        self.found = found = self.node.observe(self.name, asked, tolerant=self.params["state"] == "ended")
        decision = decide(
            self.params["state"],
            self.name,
            found.situation,
            self.spec,
            purge=self.params["purge"],
            resume_stopped=self.params["resume_stopped"],
        )
        if decision.action == "refuse" and self.spec is not None and found.job is not None:
            raise JobError(
                f"Job {self.name} is already {found.state} in Slurm, as job {found.job.number}, under another "
                f"specification ({(found.situation.spec_sha256 or 'unknown')[:8]}, asked for {self.spec.sha256[:8]}): "
                "stop it first with state=stopped, or choose another name."
            )
        return found, decision

    def _refuse_other(self) -> None:
        """Refuse to take a job for one of Slurm that runs as units: both would write in one folder.

        Units are seen on this host alone, and those of other hosts by what their job writes into the shared folder.
        """
        if queue.is_of_slurm(self.node.jobs.control(self.name).record()):
            return
        status = self.found.status if self.found is not None else None
        age = time.time() - float(status.updated_at) if status is not None and status.state in AT_WORK else HEARD
        if age < HEARD:
            raise JobError(
                f"Job {self.name} was not submitted to Slurm, and wrote {max(age, 0):.0f} s ago that it runs: stop its "
                "units with launcher=systemd and state=stopped on their nodes first, or, if it was killed, wait until "
                f"that is {HEARD} s ago."
            )
        systemctl = self.module.get_bin_path(self.params["systemctl_executable"], required=False)
        if systemctl is None:
            return
        units = JobNode(self.node.jobs.run, self.params["jobs_dir"], self.params["unit_dir"], systemctl, "")
        has_unit = os.path.exists(units.unit_path(self.name))
        if os.path.exists(units.boot_unit_path(self.name)) or (has_unit and units.may_run(self.name)):
            raise JobError(
                f"Job {self.name} is a unit of this host, which runs or starts at a boot: remove that first with "
                "launcher=systemd and state=absent, which leaves its checkpoints."
            )

    def _prepare(self, decision: Decision) -> None:
        """The script, which says what Slurm does not carry; a dry run before the trainer is there has none."""
        if self.spec is None:
            return
        try:
            check_venv(self.spec.job.venv)
        except JobError:
            if self.module.check_mode:
                return
            raise
        self.script = self.node.text(self.spec)

    def _tell(self, found: SlurmObserved, decision: Decision) -> None:
        """What is about to change, in check mode as well."""
        self.told["changed"] = self.told["pending"] = decision.changed
        if decision.action == "remove" or (decision.action == "start" and self.script is not None):
            path = self.node.script_path(self.name)
            old = self.node.jobs.control(self.name).text(SCRIPT)
            new = self.script or ""
            if old != new:
                headers = {
                    "before_header": path if old else path + " (absent)",
                    "after_header": path if new else path + " (absent)",
                }
                self.told["diff"] = [{**headers, "before": old, "after": new}]
        if decision.archive:
            jobs, kept = self.node.jobs, self.params["keep_archives"]
            archived = jobs.archive_path(self.name, found.situation.spec_sha256)
            self.told["archived"] = archived
            self.told["removed_archives"] = job_archives.surplus(jobs.jobs_dir, self.name, archived, kept)

    def _note(self, found: SlurmObserved) -> None:
        """Complete the record of a run that ended between sbatch and its note."""
        if found.job is not None and found.job.live and queue.number_of(found.record) is None:
            self.node.note_number(self.name, found.job.number, str(found.record["slurm"].get("user")))

    def _act(self, found: SlurmObserved, decision: Decision) -> None:
        """Do it."""
        node, name = self.node, self.name
        patience = float(self.params["stop_timeout"] + EPILOG)
        if decision.action in ("stop", "remove") and found.job is not None and found.job.live:
            node.cancel(found, patience)
        if decision.action == "remove":
            node.jobs.forget(name, self.params["purge"])
        elif decision.action == "start" and self.spec is not None and self.script is not None:
            if decision.archive:
                self.told["archived"] = node.jobs.archive(name, found.situation.spec_sha256)
            node.submit(self.spec, self.script)
            # Now that the new job is queued, and not before.
            node.jobs.remove_archives(self.told["removed_archives"])
