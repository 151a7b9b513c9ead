# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A job of module gaudi_train or role trainer as ``gaudi3-train slurm`` takes it, which writes its script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._jobs.spec import RUNTIME_ENVIRONMENT, JobSpec, digest_of

JOBS = "/var/lib/gaudi3-scale/jobs"
PORT = 29400
FABRIC = ("/etc/gaudi3-scale/fabric.env",)
#: Where the nodes meet, said to the rules that a job has in common with one of units.
_HEAD = "first-node-of-the-allocation"
#: Variables of the job precede those of the vendor's profile files.
SETUP = (
    f"if [ -r {RUNTIME_ENVIRONMENT} ]; then given=$(export -p); set -a; . {RUNTIME_ENVIRONMENT}; set +a; "
    'eval "$given"; fi'
)
#: Options that Slurm has no place for, and what to do; each with the value that asks for nothing.
NOT_CARRIED: Mapping[str, tuple[Any, str]] = {
    "spares": (0, "Slurm gives a job that goes back into the queue other nodes: leave it out"),
    "min_nodes": (None, "an allocation has one number of nodes: leave it out"),
    "container": (None, "call the engine in a script of your own, and name that in command"),
    "node_config": (None, "all nodes read one configuration: put it into config"),
    "environment_files": (FABRIC, "read them in slurm.setup, such as `set -a; . /etc/mine.env; set +a`"),
    "modules": ((), "Slurm chooses the cards: leave it out"),
    "groups": ((), "a job has the groups that its user has on the controller of Slurm: add the user to them there"),
    "data_sets": ((), "set data.directory in config; a set that a process has in its memory stays on the node"),
    "start_at_boot": (False, "Slurm puts the jobs of a node that was lost back into the queue: leave it out"),
    "rejoin": (False, "a job of Slurm starts on all of its nodes at once: leave it out"),
}


def not_carried(given: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each option that is set and that Slurm does not carry; ``names`` are what they are called."""
    for option, (nothing, remedy) in NOT_CARRIED.items():
        value = given.get(option)
        if value not in (None, "", {}, [], ()) and _plain(value) != _plain(nothing):
            yield f"{names.get(option, option)} is set, and launcher slurm does not carry it: {remedy}."


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else value


def folder_problem(jobs_dir: str, mounted: bool, name: str = "jobs_dir") -> str:
    """Why the nodes cannot share this folder, in one sentence; empty where nothing speaks against it."""
    if jobs_dir.rstrip("/") != JOBS or mounted:
        return ""
    return (
        f"{name} is {JOBS}, which each node has for itself, and Slurm may give the job another node each time: set it "
        "to a folder that this host and all nodes share, such as /shared/jobs."
    )


@dataclass(frozen=True)
class SlurmSpec:
    """All that makes two submissions of a job the same, and the same training as a unit of this configuration."""

    job: JobSpec
    slurm: Mapping[str, Any] = field(default_factory=dict)
    """Options of Slurm, without those that nobody gave."""
    folder: str = JOBS

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> SlurmSpec:
        """From the options of module gaudi_train; ValueError, in one sentence, for a job that cannot run anywhere."""
        for sentence in not_carried(params, {}):
            raise ValueError(sentence)
        given = {"min_nodes": None, "container": None, "environment_files": ()}
        job = JobSpec.from_params({**params, **given, "head_address": _HEAD})
        slurm = {name: value for name, value in (params["slurm"] or {}).items() if value not in (None, [])}
        return cls(job, slurm, params["jobs_dir"])

    @property
    def cluster(self) -> dict[str, Any]:
        """The file of ``--cluster`` of ``gaudi3-train slurm``."""
        job = self.job
        own: dict[str, Any] = {
            "name": job.name,
            "nodes": len(job.nodes),
            "processes_per_node": job.processes_per_node,
            "folder": self.folder,
            "venv": job.venv,
            "max_restarts": job.max_restarts,
            "stop_timeout": job.stop_timeout,
            "environment": dict(job.environment),
        }
        optional: dict[str, Any] = {
            "threads": job.threads,
            "command": list(job.command),
            "chdir": job.chdir,
            "rdzv_port": None if job.rdzv_port == PORT else job.rdzv_port,
        }
        given = {name: value for name, value in optional.items() if value not in (None, [])}
        return {**own, **given, **self.slurm, "setup": [SETUP, *self.slurm.get("setup", [])]}

    @property
    def cluster_text(self) -> str:
        """The same as a file, in JSON, which is YAML."""
        return json.dumps(self.cluster, indent=2, sort_keys=True) + "\n"

    @property
    def job_text(self) -> Optional[str]:
        """The job file; None for a script of the user's own."""
        return None if self.job.command else json.dumps(dict(self.job.config), indent=2, sort_keys=True) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """The specification as plain data, as it is kept in job.json."""
        found = self.job.as_dict()
        for name in ("head_address", "nodes", "environment_files"):
            found.pop(name, None)
        return {**found, "launcher": "slurm", "cluster": self.cluster}

    @property
    def sha256(self) -> str:
        """Identity of the job: same hash, same job."""
        return digest_of(self.as_dict())

    @property
    def config_sha256(self) -> str:
        """Identity of the training itself, whatever carries it."""
        return self.job.config_sha256
