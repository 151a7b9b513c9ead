# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_train does on a node: look at the job, decide, act, tell how it is then."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Optional

from .. import _traces
from .._health import admission, fence
from .._health.checks import DEPTHS
from .._health.examine import Patience
from .._hl_smi.command import HlSmi, Runner, environment
from .._jobs import archives as job_archives
from .._jobs import container as job_container
from .._jobs import neighbours as job_neighbours
from .._jobs.config_file import config_text
from .._jobs.decision import Decision, decide
from .._jobs.files import SECRET, TRACE, JobError
from .._jobs.launch_command import NodeShare
from .._jobs.node import PLACES, JobNode, check_data_set, check_script, check_venv, owner_of
from .._jobs.spec import JobSpec
from .._jobs.state import Observed
from .._jobs.unit import boot_unit_text, unit_text
from . import train_slurm, train_work

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["started", "finished", "ended", "stopped", "absent"], "default": "started"},
    "launcher": {"type": "str", "choices": [train_slurm.SYSTEMD, train_slurm.SLURM]},
    "slurm": {"type": "dict", "options": train_slurm.OPTIONS},
    "config": {"type": "dict"},
    "command": {"type": "list", "elements": "str"},
    "chdir": {"type": "path"},
    "node_config": {"type": "dict"},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "head_address": {"type": "str"},
    "is_head": {"type": "bool"},
    "address": {"type": "str"},
    "interface": {"type": "str"},
    "groups": {"type": "list", "elements": "str", "default": []},
    "modules": {"type": "list", "elements": "int", "default": []},
    "rdzv_port": {"type": "int", "default": 29400},
    "processes_per_node": {"type": "int", "default": 1},
    "cards": {"type": "int"},
    "max_restarts": {"type": "int", "default": 0},
    "spares": {"type": "int", "default": 0},
    "min_nodes": {"type": "int"},
    "threads": {"type": "int"},
    "environment": {"type": "dict", "default": {}},
    "environment_files": {"type": "list", "elements": "path", "default": ["/etc/gaudi3-scale/fabric.env"]},
    "user": {"type": "str", "default": "gaudi3-scale"},
    "venv": {"type": "path", "default": "/opt/gaudi3-scale/venv"},
    "container": {
        "type": "dict",
        "options": {
            "engine": {"type": "str", "choices": list(job_container.ENGINES), "default": "podman"},
            "image": {"type": "str", "required": True},
            "folders": {"type": "list", "elements": "path", "default": []},
            "cards": {"type": "bool", "default": True},
        },
    },
    "data_sets": {"type": "list", "elements": "path", "default": []},
    "stop_timeout": {"type": "int", "default": 120},
    "start_at_boot": {"type": "bool", "default": False},
    "trainer_version": {"type": "str"},
    "rejoin": {"type": "bool", "default": False},
    "resume_stopped": {"type": "bool", "default": True},
    "passports": {
        "no_log": False,
        "type": "dict",
        "options": {
            "mode": {"type": "str", "choices": list(admission.MODES), "default": admission.SHADOW},
            "folder": {"type": "path", "required": True},
            "depth": {"type": "str", "choices": list(DEPTHS), "default": "quick"},
            "executable": {"type": "path", "default": "hl-smi"},
            "timeout": {"type": "int", "default": 30},
            "problem": {"type": "str", "default": ""},
            "versions": {"type": "dict", "default": {}},
        },
    },
    "secret": {"type": "str", "no_log": True},
    "secrets_dir": {"type": "path", "no_log": False},
    "trace_parent": {"type": "str"},
    "ended_on": {"type": "str"},
    "purge": {"type": "bool", "default": False},
    "keep_archives": {"type": "int"},
    "peers": {"type": "dict", "default": {}},
    "poll_interval": {"type": "float", "default": 5.0},
    "timeout": {"type": "int", "default": 3600},
    "lines": {"type": "int", "default": 20},
    **PLACES,
}

RULES: dict[str, Any] = {
    "mutually_exclusive": [("command", "config"), ("command", "node_config")],
    "required_by": {"chdir": ("command",)},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Bring the job to its state on this node."""
    try:
        of_slurm = train_slurm.is_asked_for(module)
    except ValueError as error:
        module.fail_json(msg=str(error))
    work = train_slurm.Work(module) if of_slurm else Work(module)
    try:
        work.carry_out()
    except ValueError as error:
        module.fail_json(msg=str(error))
    except (JobError, OSError) as error:
        message, log = (str(error), error.log) if isinstance(error, JobError) else (_trouble(work.name, error), [])
        module.fail_json(msg=message, log=log, **work.result())
    return work.result()


class Work(train_work.Work[Observed]):
    """One task on one job of units."""

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        self.node = JobNode.of(module)
        self.spec: Optional[JobSpec] = None
        self.share = NodeShare(self.directory)
        self.texts: dict[str, str] = {}
        """Files of the job by their paths."""
        self.owner = (0, 0)

    @property
    def directory(self) -> str:
        """The job's folder."""
        return self.node.directory(self.name)

    def _refuse_other(self) -> None:
        train_slurm.refuse_live(self.module)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        return self.node.alone()

    def _admit(self, decision: Decision) -> None:
        if self.spec is not None and decision.action == "start":
            job_neighbours.refuse_clash(self.node, self.spec, self.share)

    def _observe(self) -> Observed:
        return self.node.observe(self.name)

    def _describe(self) -> None:
        """Specification, this node's share and files of a job that is to run."""
        node, name, params = self.node, self.name, self.params
        spec = JobSpec.from_params(params)
        spec.check_cards(params["cards"])
        share = NodeShare(
            node.directory(name),
            params["address"],
            params["is_head"],
            params["node_config"],
            params["interface"],
            tuple(params["groups"]),
            tuple(params["modules"]),
        )
        if spec.container is not None:
            share = replace(share, **_contained(spec))
        texts = {node.unit_path(name): unit_text(spec, share)}
        if params["start_at_boot"]:
            texts[node.boot_unit_path(name)] = boot_unit_text(spec, node.directory(name), node.systemctl)
        if share.file_variables:
            texts[node.environment_path(name)] = job_container.file_text(share.file_variables)
        if not spec.command:
            texts[node.config_path(name)] = config_text(spec, share)
        self.spec, self.share, self.texts = spec, share, texts

    def _look(self) -> tuple[Observed, Decision]:
        """The job as it is, and what is done about it."""
        self.found = found = self.node.observe_at_rest(self.name)
        decision = decide(
            self.params["state"],
            self.name,
            found.situation,
            self.spec,
            purge=self.params["purge"],
            rejoin=self.params["rejoin"],
            resume_stopped=self.params["resume_stopped"],
        )
        if decision.action == "refuse":
            raise JobError(decision.reason)
        return found, decision

    def _prepare(self, decision: Decision) -> None:
        """Refuse a start on a node that is out of service or lacks what the job needs."""
        found = fence.read()
        if found is not None:
            raise JobError(fence.refusal(found))
        ask_for_the_passport(self.module)
        if self.spec is not None and not self.module.check_mode:
            self.owner = owner_of(self.spec.user)
            check_venv(self.spec.venv, self.spec.container is not None)
            self.texts[os.path.join(self.node.control(self.name).path, SECRET)] = self._secret(self.spec) + "\n"
            if self.spec.is_traced:
                self.texts[os.path.join(self.node.control(self.name).path, TRACE)] = (
                    self._trace(decision.archive) + "\n"
                )
            if self.spec.script is not None:
                check_script(self.spec.script)
            for place in self.spec.data_sets:
                check_data_set(place)

    def _secret(self, spec: JobSpec) -> str:
        """By which the nodes know each other; a node that is alone makes it up."""
        given: Optional[str] = self.params["secret"]
        if not given and len(spec.nodes) > 1:
            raise ValueError(
                f"Job {self.name} has {len(spec.nodes)} nodes and no secret by which they know each other: run the "
                "task as gaudi3.scale.gaudi_train, whose half on the controller makes it."
            )
        return given or secrets.token_hex(32)

    def _trace(self, fresh: bool) -> str:
        """What the job's spans belong to: what they belonged to before, unless it is another training."""
        kept = "" if fresh else _traces.valid(self.node.control(self.name).text(TRACE))
        return kept or _traces.valid(self.params["trace_parent"])

    def _tell(self, found: Observed, decision: Decision) -> None:
        """What is about to change, in check mode as well."""
        self.told["changed"] = self.told["pending"] = decision.changed
        if decision.action in ("start", "remove"):
            self.told["diff"] = self.node.diff(self.name, self.texts)
        if decision.archive:
            archived = self.node.archive_path(self.name, found.situation.spec_sha256)
            kept = self.params["keep_archives"]
            self.told["archived"] = archived
            self.told["removed_archives"] = job_archives.surplus(self.node.jobs_dir, self.name, archived, kept)

    def _act(self, found: Observed, decision: Decision) -> None:
        """Do it."""
        node, name = self.node, self.name
        if decision.action == "stop":
            node.stop(name)
        elif decision.action == "remove":
            node.remove(found, self.params["purge"])
        elif self.spec is not None:
            if decision.archive:
                self.told["archived"] = node.archive(name, found.situation.spec_sha256)
            as_recorded = job_neighbours.as_recorded(self.share)
            node.start(self.spec, self.texts, self.owner, self.params["lines"], as_recorded)
            # Now that the new job runs, and not before.
            node.remove_archives(self.told["removed_archives"])


def ask_for_the_passport(module: AnsibleModule) -> None:
    """Refuse a node without a valid passport, or warn of it, by the option ``passports``."""
    asked = module.params["passports"]
    if asked is None or asked["mode"] == admission.OFF:
        return
    path = module.get_bin_path(asked["executable"])
    run = Patience(Runner(asked["timeout"], environment(module)))
    problem = admission.of_the_node(asked, None if path is None else HlSmi(path, run))
    if not problem:
        return
    if asked["mode"] == admission.ENFORCE:
        raise JobError(
            f"This node has no valid passport, as {problem}: examine it with the playbook gaudi3.scale.health, or "
            "leave it out of the job."
        )
    module.warn(f"This node has no valid passport, as {problem}. With passports enforced, no job would start here.")


def _contained(spec: JobSpec) -> dict[str, Any]:
    """What a job in a container gets of this node, besides what every job does."""
    variables: dict[str, str] = {}
    for path in spec.environment_files:
        try:
            with open(path, encoding="utf-8") as stream:
                variables.update(job_container.variables_of(stream.read()))
        except FileNotFoundError:
            continue
    files = job_container.node_files()
    return {"file_variables": variables, "devices": job_container.node_devices(), "files": files}


def _trouble(name: str, error: OSError) -> str:
    return f"Job {name} was not brought to its state on this node: {error}; mend that and run again."
