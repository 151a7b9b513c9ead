#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Take a Gaudi node out of service, or give it back to jobs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_fence
short_description: Take a Gaudi node out of service, or give it back
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - A node that is out of service has a file C(fence.json) with the reason. M(gaudi3.scale.gaudi_train) starts no job
    there, and neither does the unit of a job.
  - Training jobs that run on the node are told to leave. They save a checkpoint, and a job with spare nodes continues
    on one of them. What ran is kept in the fence.
  - A node that is given back starts those jobs again that still run elsewhere, as a spare node of theirs. It also
    starts those that cannot have gone on without it, as they have no spare nodes or their rendezvous is here. These
    are named in RV(ended), and continue from their checkpoints once their other nodes start them, too (O(resume)). A
    job that may have ended elsewhere is left stopped.
  - Where the fence cannot be written the jobs are still stopped.
  - Every change is a line of the node's history, which M(gaudi3.scale.gaudi_health_info) returns.
options:
  state:
    description: Whether jobs may use the node.
    type: str
    choices: [out, in_service]
    required: true
  reason:
    description: Why it is out of service, or in again.
    type: str
    default: ""
  step:
    description: The step of its remediation that comes next, such as V(reset). It is in the fence and in the history.
    type: str
    default: ""
  resume:
    description:
      - With O(state=in_service), jobs that this node starts again though no rendezvous answers, as the others do too.
        Each is given with the list of nodes that it ended with.
      - Left alone are a job that the node does not have, that runs or is finished, or that a person stopped. So is a
        job that has none of the given nodes, by what this node has on record of it, as a node can name any job.
      - Nothing is started on a node that is out of service.
    type: dict
    default: {}
  by:
    description:
      - Who takes the node out. V(healing) is the playbook C(gaudi3.scale.heal), which gives back what it took out, and
        leaves a node alone that V(person) took out, in both directions.
    type: str
    choices: [person, healing]
    default: person
  only_idle:
    description:
      - With O(state=out), leave a node in service on which a job runs, and say so in RV(busy). So a node can be tested
        without taking it from anybody.
    type: bool
    default: false
  folder:
    description: Folder of the fence and of the history.
    type: path
    default: /var/lib/gaudi3-scale/health
  runtime:
    description:
      - Folder in memory. Where the disk takes no fence, as it is full or read-only, a file C(fence) here is one as
        well, until the node restarts.
    type: path
    default: /run/gaudi3-scale
  jobs_dir:
    description: Folder below which each job has its own.
    type: path
    default: /var/lib/gaudi3-scale/jobs
  unit_dir: {description: Folder of the jobs' units., type: path, default: /etc/systemd/system}
  systemctl_executable: {description: The C(systemctl) to use., type: path, default: systemctl}
  journalctl_executable: {description: The C(journalctl) to use., type: path, default: journalctl}
attributes:
  check_mode:
    description: Says which jobs would be stopped or started.
    support: full
  diff_mode:
    description: Shows the fence.
    support: full
  platform:
    description: Linux with systemd.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Take a node out of service
  gaudi3.scale.gaudi_fence:
    state: out
    reason: its power supply is replaced

- name: Give it back
  gaudi3.scale.gaudi_fence:
    state: in_service
"""

RETURN = r"""
jobs:
  description: Jobs that were stopped or started (in check mode, that would be).
  returned: success
  type: list
  elements: str
  sample: [pretrain]
busy:
  description: Whether the node was left in service for a job, with O(only_idle).
  returned: success
  type: bool
  sample: false
fence:
  description: The fence that was there before, null without one.
  returned: success
  type: dict
  sample: {by: person, reason: its power supply is replaced, step: "", since: 1767225600.25, jobs: []}
unwritten:
  description: What could not be written on the node, and why.
  returned: success
  type: list
  elements: str
  sample: []
ended:
  description: Those of RV(jobs) that ended everywhere when the node was taken out.
  returned: success
  type: list
  elements: str
  sample: []
"""

import contextlib
import errno
import json
import os
import socket
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import fence, history
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import JobError
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import PLACES, JobNode
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.resumed import may_be_resumed
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.rules import outlives_a_node
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import (
    FAILED,
    INTERRUPTED,
    SPARE,
    STOPPED,
    unit_name,
)

#: Seconds that the rendezvous of a job may take to answer.
PATIENCE = 3.0


def meets(specification: "dict[str, Any]") -> bool:
    """Whether the rendezvous of a job still answers, that is whether the job runs on its head."""
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError):
        place = (str(specification["head_address"]), int(specification["rdzv_port"]))
        with socket.create_connection(place, PATIENCE):
            return True
    return False


def ended_with_it(record: "dict[str, Any]") -> bool:
    """Whether a job cannot have gone on without this node: all of its nodes work, or they meet here."""
    specification = record.get("specification") or {}
    nodes = len(specification.get("nodes") or ())
    outlives = outlives_a_node(nodes, specification.get("spares", 0), specification.get("min_nodes"))
    return nodes > 0 and (not outlives or (record.get("share") or {}).get("is_head") is True)


class Fence:
    """The node's fence, and the jobs on the node."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._asked = module.params
        self._node = JobNode.of(module)
        self._path = os.path.join(self._asked["folder"], fence.FENCE)
        self._in_memory = os.path.join(self._asked["runtime"], fence.RUNTIME_FENCE)
        self._before = fence.read(self._asked["folder"], self._asked["runtime"])
        self._unwritten: "list[str]" = []
        self._unfenced = False

    @property
    def before(self) -> "dict[str, Any] | None":
        """The fence that was there before."""
        return self._before

    def take_out(self) -> "dict[str, Any]":
        """Write the fence, then stop what runs, so that nothing starts in between; stop it without a fence too."""
        running = self._node.running()
        if self._is_a_persons():
            return {"changed": False, "jobs": [], "ended": [], "unwritten": []}
        if self._asked["only_idle"] and running:
            return self._leave_to(running)
        before = self._before or {}
        named = before.get("jobs")
        kept = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
        same = (before.get("reason"), before.get("step")) == (self._asked["reason"], self._asked["step"])
        content = {
            "reason": self._asked["reason"],
            "step": self._asked["step"],
            "by": before.get("by", self._asked["by"]),
            "since": before.get("since", round(time.time(), 3)),
            "jobs": sorted({*kept, *running}),
        }
        text = json.dumps(content, indent=1, sort_keys=True) + "\n"
        diff = None
        if self._before is None or not same or content["jobs"] != before.get("jobs"):
            diff = self._write(text)
        if not self._module.check_mode:
            # No unit starts from here on; one that did before is seen now.
            if self._asked["only_idle"] and (running := self._node.running()):
                return self._leave_to(running)
            if diff is not None:
                self._note("out", running)
            failed = self._systemctl("stop", running)
            if self._unfenced:
                stopped = [name for name in running if name not in failed]
                self._module.fail_json(
                    msg=f"No fence could be written ({'; '.join(self._unwritten)}), so only the jobs that ran were "
                    f"stopped ({', '.join(stopped) or 'none'}): make room on the node's disk, or switch the node off."
                )
            self._refuse(failed)
        changed = diff is not None or bool(running)
        return {"changed": changed, "jobs": running, "ended": [], "diff": diff or {}, "unwritten": self._unwritten}

    def _leave_to(self, running: "list[str]") -> "dict[str, Any]":
        """The node stays in service for these jobs; a fence that only waited for it to be idle goes."""
        jobs: "dict[str, Any]" = {"jobs": [], "ended": [], "unwritten": [], "busy": True}
        found = fence.read(self._asked["folder"], self._asked["runtime"])
        if found is None or found.get("step") != self._asked["step"]:
            return {"changed": False, **jobs}
        diffs = [ensure_file(self._module, path, None) for path in (self._path, self._in_memory)]
        diff = next((each for each in diffs if each is not None), {})
        return {"changed": self._before is not None, "diff": diff if self._before is not None else {}, **jobs}

    def _is_a_persons(self) -> bool:
        """Whether healing is asked to change what a person decided."""
        return self._asked["by"] == "healing" and self._before is not None and self._before.get("by") != "healing"

    def _write(self, text: str) -> "dict[str, Any]":
        """Write the fence to the disk, or where that fails to memory."""
        for path in (self._path, self._in_memory):
            try:
                if os.path.isdir(path):  # which would end the module, with jobs that run
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                return ensure_file(self._module, path, text) or {}
            except OSError as error:
                self._unwritten.append(f"{path}: {error.strerror or error}")
        self._unfenced = True
        return {}

    def give_back(self) -> "dict[str, Any]":
        """Remove the fence, then start what the others of a job still wait for."""
        if self._before is None or self._is_a_persons():
            return self._resume()
        left = {name: record for name in self._jobs_before() if (record := self._left(name)) is not None}
        met = [name for name, record in left.items() if meets(record.get("specification") or {})]
        ended = [name for name, record in left.items() if name not in met and ended_with_it(record)]
        started = [name for name in left if name in (*met, *ended)]
        diffs = [ensure_file(self._module, path, None) for path in (self._path, self._in_memory)]
        if not self._module.check_mode:
            self._note("in service", started)
            self._start(started)
        diff = next((each for each in diffs if each is not None), {})
        return {"changed": True, "jobs": started, "ended": ended, "diff": diff, "unwritten": self._unwritten}

    def _jobs_before(self) -> "list[str]":
        """The jobs that the fence names, of those that the node has."""
        named, known = (self._before or {}).get("jobs"), self._node.names()
        return [name for name in named if name in known] if isinstance(named, list) else []

    def _resume(self) -> "dict[str, Any]":
        asked = self._asked["resume"]
        known = self._node.names() if asked else []
        left = {name: record for name in asked if name in known and (record := self._left(name)) is not None}
        started = [name for name, record in left.items() if may_be_resumed(record, asked[name])]
        if not self._module.check_mode:
            self._start(started)
        return {"changed": bool(started), "jobs": started, "ended": [], "unwritten": []}

    def _left(self, name: str) -> "dict[str, Any] | None":
        """The record of a job that ended on this node before it was done, and not by a person's will."""
        found = self._node.observe(name)
        left = found.state in (STOPPED, INTERRUPTED, FAILED, SPARE) and found.situation.has_setup
        return found.record if left and not found.record.get("stopped_at") else None

    def _start(self, names: "list[str]") -> None:
        self._refuse(self._systemctl("start", names))

    def _note(self, what: str, jobs: "list[str]") -> None:
        entry = {
            "at": round(time.time(), 3),
            "what": what,
            "reason": self._asked["reason"],
            "step": self._asked["step"],
        }
        try:
            history.append([{**entry, "jobs": jobs}], self._asked["folder"])
        except OSError as error:
            self._unwritten.append(f"the history in {self._asked['folder']}: {error.strerror or error}")

    def _systemctl(self, verb: str, names: "list[str]") -> "dict[str, str]":
        """Do this to each of the jobs; why it failed, by the job. One that fails keeps no other waiting."""
        failed = {}
        for name in names:
            code, output, errors = self._module.run_command([self._node.systemctl, verb, unit_name(name)])
            if code != 0:
                failed[name] = f"'systemctl {verb} {unit_name(name)}' failed ({(errors or output).strip()})"
        return failed

    def _refuse(self, failed: "dict[str, str]") -> None:
        if not failed:
            return
        first, *others = failed
        more = f" So did {', '.join(map(unit_name, others))}." if others else ""
        self._module.fail_json(
            msg=f"{failed[first]}: look into its log with 'journalctl -u {unit_name(first)}', and run again.{more}"
        )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["out", "in_service"], "required": True},
            "reason": {"type": "str", "default": ""},
            "step": {"type": "str", "default": ""},
            "resume": {"type": "dict", "default": {}},
            "by": {"type": "str", "choices": ["person", "healing"], "default": "person"},
            "only_idle": {"type": "bool", "default": False},
            "folder": {"type": "path", "default": fence.FOLDER},
            "runtime": {"type": "path", "default": fence.RUNTIME},
            **PLACES,
        },
        supports_check_mode=True,
    )
    try:
        here = Fence(module)
        result = here.take_out() if module.params["state"] == "out" else here.give_back()
    except (JobError, OSError) as error:
        module.fail_json(msg=f"The node was not taken out of service or given back: {str(error).rstrip('.')}.")
    if result["unwritten"]:
        module.warn(f"This could not be written on the node: {'; '.join(result['unwritten'])}.")
    module.exit_json(**{"busy": False, "fence": here.before, **result})


if __name__ == "__main__":
    main()
