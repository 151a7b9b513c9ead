# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Training jobs: what a job is, what identifies it, and what to do about one that is there already."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Optional

from .._traces import is_wanted
from . import rules
from .secrets import secret_problem

ABSENT, STOPPED, RUNNING, FINISHED, FAILED = "absent", "stopped", "running", "finished", "failed"
#: Left because it was told to, with a committed checkpoint; and a spare node that was not needed.
INTERRUPTED, SPARE = "interrupted", "spare"


#: Below the folder of all jobs: what root writes about each, out of reach of the jobs' user. No job has such a name.
CONTROL = ".control"
#: The trainer's configuration in it.
CONFIG = "config.yml"
#: Beginning of the names of files in it, one for each node, in which the unit keeps what systemd calls its last run.
INVOCATION = "invocation"
#: What the vendor's profile files set, which every job reads first.
RUNTIME_ENVIRONMENT = "/etc/gaudi3-scale/runtime.env"


def control_folder(directory: str) -> str:
    """Where root keeps its files about the job with this folder."""
    parent, name = os.path.split(directory)
    return os.path.join(parent, CONTROL, name)


def unit_name(job: str) -> str:
    """The systemd unit of a job."""
    return f"gaudi-train-{job}.service"


def boot_unit_name(job: str) -> str:
    """The unit that starts a job again after a boot; no job's unit has a name that begins like this."""
    return f"gaudi-boot-{job}.service"


def digest_of(value: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class JobSpec:
    """All that makes two runs of a job the same run, on every node alike.

    What belongs to one node only (its own address, whether it is the head) is no part of it, because
    the nodes of a job find each other by this specification's hash.
    """

    name: str
    config: Mapping[str, Any]
    nodes: tuple[str, ...]
    head_address: str
    rdzv_port: int = 29400
    processes_per_node: int = 1
    max_restarts: int = 0
    threads: Optional[int] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_files: tuple[str, ...] = ()
    user: str = "gaudi3-scale"
    venv: str = "/opt/gaudi3-scale/venv"
    stop_timeout: int = 120
    trainer_version: Optional[str] = None
    spares: int = 0
    min_nodes: Optional[int] = None
    #: A script of the user's and its arguments, in place of the trainer and its configuration; empty for those.
    command: tuple[str, ...] = ()
    #: The folder that the command runs in; None for the job's own.
    chdir: Optional[str] = None
    #: Engine, image and folders of the container that the job runs in; None for none.
    container: Optional[Mapping[str, Any]] = None
    #: Folders of sets of training data which stay on the node for the job.
    data_sets: tuple[str, ...] = ()

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> JobSpec:
        """Build and check a specification from a module's parameters."""
        values = {item.name: params[item.name] for item in fields(cls)}
        for name in ("nodes", "environment_files", "command", "data_sets"):
            values[name] = tuple(values[name] or ())
        values["config"] = values["config"] or {}
        values["environment"] = {key: str(value) for key, value in (values["environment"] or {}).items()}
        spec = cls(**values)
        spec.check()
        return spec

    def check(self) -> None:
        """Raise ValueError, in one sentence, for a job that cannot run anywhere."""
        rules.check({**self._values(), "head_address": self.head_address or ""})
        secret = secret_problem(self.environment, self.command, {"config": self.config})
        if secret is not None:
            raise ValueError(secret)

    @property
    def script(self) -> Optional[str]:
        """The path of the user's script; None for a job of the trainer's own."""
        return rules.script_of(self._values()) or None

    @property
    def replaces(self) -> bool:
        """Whether the job goes on when it loses a node, with a spare or without."""
        return rules.outlives_a_node(len(self.nodes), self.spares, self.min_nodes)

    @property
    def is_traced(self) -> bool:
        """Whether the job was asked to send traces, by a variable that it is given openly."""
        return is_wanted(self.environment)

    @property
    def nnodes(self) -> str:
        """How many nodes work, as torchrun wants it."""
        most = len(self.nodes) - self.spares
        least = most if self.min_nodes is None else self.min_nodes
        return str(most) if least == most else f"{least}:{most}"

    def check_cards(self, cards: Optional[int]) -> None:
        """Raise ValueError when a node has fewer cards than the job has processes there."""
        rules.check({"cards": cards, "processes_per_node": self.processes_per_node})

    def _values(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def as_dict(self) -> dict[str, Any]:
        """The specification as plain data, as it is kept in job.json."""
        values = self._values()
        # Left out, a job is the one it was before there was the option.
        for name in ("spares", "min_nodes", "command", "chdir", "container", "data_sets"):
            if not values[name]:
                del values[name]
        for name, value in values.items():
            if isinstance(value, tuple):
                values[name] = list(value)
            elif isinstance(value, Mapping):
                values[name] = dict(value)
        return values

    @property
    def sha256(self) -> str:
        """Identity of the job: same hash, same job."""
        return digest_of(self.as_dict())

    @property
    def config_sha256(self) -> str:
        """Identity of the training itself: checkpoints of one are of no use to another."""
        if self.command:
            return digest_of({"command": [self.script, *self.command[1:]], "chdir": self.chdir})
        return digest_of(dict(self.config))

    @property
    def rdzv_id(self) -> str:
        """Under which the nodes of this job, and no others, meet."""
        return f"{self.name}-{self.sha256[:8]}"
