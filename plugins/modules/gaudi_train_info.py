#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_train_info
short_description: Look at the training jobs of a node
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Returns what a node knows of its training jobs, those of M(gaudi3.scale.gaudi_train), from their units and
    their status files. Of those that were submitted to Slurm it asks Slurm.
options:
  name:
    description: Name of the one job to look at. If omitted, all jobs with a folder or a unit on the node are
      returned.
    type: str
  lines:
    description: How many of the last lines of the log to return with each job. V(0) returns none.
    type: int
    default: 0
  peers:
    description:
      - The other nodes of a job, by name, each with a list of the addresses at which the inventory has it. Given on the
        head node, RV(jobs[].missing) says which of them have not come yet.
    type: dict
    default: {}
  jobs_dir:
    description: Folder on the node below which each job has its own.
    type: path
    default: /var/lib/gaudi3-scale/jobs
  unit_dir: {description: Folder of the units., type: path, default: /etc/systemd/system}
  systemctl_executable: {description: The C(systemctl) to use., type: path, default: systemctl}
  journalctl_executable: {description: The C(journalctl) to use., type: path, default: journalctl}
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  platform:
    description: Linux with systemd.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.gaudi_train
"""

EXAMPLES = r"""
- name: How far is the job?
  gaudi3.scale.gaudi_train_info:
    name: demo
  register: training

- name: Show it
  ansible.builtin.debug:
    msg: "{{ training.jobs[0].state }}, step {{ training.jobs[0].status.step }}"
"""

RETURN = r"""
jobs:
  description: The jobs, by name. A job asked for by name is returned even if it is not there, as V(absent).
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: "Name of the job.", type: str, sample: demo}
    state:
      description:
        - One of V(absent), V(stopped), V(running), V(finished), V(failed), V(interrupted) and V(spare); of a job of
          Slurm, also V(queued), and V(unknown) where Slurm does not answer.
        - V(interrupted) left in order because it was told to, by a signal, a file or its cloud, and continues
          when it is started again. V(spare) was not needed on this node.
      type: str
      sample: finished
    slurm:
      description:
        - Of a job that was submitted to Slurm, which job it is there, with its state, the reason why it waits and its
          nodes; all but the number are empty once Slurm has forgotten it. Such a job has no RV(jobs[].unit),
          RV(jobs[].active_state), RV(jobs[].sub_state) and RV(jobs[].result).
      type: dict
      sample: {job: 17, state: PENDING, reason: Resources, nodes: ""}
    unit: {description: "The systemd unit.", type: str, sample: gaudi-train-demo.service}
    directory:
      description: Folder of the job's output on the node, with its status, checkpoints and metrics.
      type: str
      sample: /var/lib/gaudi3-scale/jobs/demo
    command:
      description: The script and its arguments with which the job was last started; null for the trainer's own jobs.
      type: list
      elements: str
      sample: [train.py, --steps, "2000"]
    spec_sha256:
      description: SHA-256 of the specification with which the job was last started; null if it never was.
      type: str
      sample: 5d1c7a8e0f0a4f4b8c5b6a0f3f1a2b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a
    active_state: {description: "The unit's state in systemd's words.", type: str, sample: inactive}
    sub_state: {description: "The unit's finer state in systemd's words.", type: str, sample: dead}
    result:
      description: How the unit's last run ended in systemd's words. Forgotten at a reboot.
      type: str
      sample: success
    exit_status:
      description: Exit status of the unit's last run, or the number of the signal that ended it.
      type: int
      sample: 0
    ending:
      description: How the unit's last run ended, in words; null while it runs.
      type: str
      sample: exit status 0
    status:
      description:
        - What the trainer last wrote to C(status.json); null before it wrote anything since the job runs.
        - Of a script of the user's the launcher writes the state. The rest is there if the script has one of the
          trainer's callbacks.
        - What it contains is described at RV(gaudi3.scale.gaudi_train#module:job.status).
      type: dict
      sample: {state: finished, step: 200, max_steps: 200, loss: 2.31}
    missing:
      description:
        - Nodes of O(peers) that are not connected to the rendezvous of the job, whose trainer has written nothing yet.
          Empty for a job that trains or does not run.
      type: list
      elements: str
      sample: []
    log:
      description: The last O(lines) lines of the journal since the job was last started.
      type: list
      elements: str
      sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import JobError
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.missing_nodes import missing_here
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import PLACES, JobNode
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.rules import check
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import queue
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm.node import SlurmNode

SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "lines": {"type": "int", "default": 0},
    "peers": {"type": "dict", "default": {}},
    **PLACES,
}


def _of_slurm(module: AnsibleModule, name: str) -> dict[str, Any]:
    """A job that was submitted to Slurm."""
    node = SlurmNode.of(module)
    found = node.observe(name, tolerant=True)
    log = node.log(name, module.params["lines"], queue.number_of(found.record))
    return {**found.as_dict(node.directory(name)), "missing": [], "log": log}


def main() -> None:
    """Look at one job or at all."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    params = module.params
    node = JobNode.of(module)
    jobs = []
    try:
        if params["name"] is not None:
            check({"name": params["name"]})
        for name in node.names() if params["name"] is None else [params["name"]]:
            if queue.is_of_slurm(node.control(name).record()):
                jobs.append(_of_slurm(module, name))
                continue
            found = node.observe(name)
            log = node.log(name, params["lines"], found.record.get("started_at"), found.run)
            meets = found.unit.up and found.status is None
            absent = missing_here(params["peers"], found.record.get("specification") or {}) if meets else []
            jobs.append({**found.as_dict(node.directory(name)), "missing": absent, "log": log})
    except (ValueError, JobError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, jobs=jobs)


if __name__ == "__main__":
    main()
