# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Training jobs: what a job is, what identifies it, and what to do about one that is there already."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Optional

from .secrets import secret_problem

NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?")
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:_-]*[A-Za-z0-9])?")
USER = re.compile(r"[a-z_][a-z0-9_-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What systemd may take for the end of a line, and what cannot be written to a file as text.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

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
#: Folders that a job has for itself, empty at its start (PrivateTmp= of its unit).
PRIVATE_FOLDERS = ("/tmp", "/var/tmp")


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


def check_name(name: str) -> None:
    """Raise ValueError when a job's name could not be a unit's and a folder's name."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"Job name {name!r} cannot be used: take 1 to 63 lower-case letters, digits, '-' and '_', "
            "beginning and ending with a letter or digit."
        )


def check_path(option: str, path: str) -> None:
    """Raise ValueError for a path that systemd would not read from a unit's line as it was meant.

    Lines of paths know no quotes: a backslash at the end joins the next line, spaces at the end are dropped.
    """
    if not path.startswith("/") or UNPRINTABLE.search(path) or "\\" in path or path != path.strip():
        raise ValueError(
            f"{option} is {path!r}, which cannot be written into a unit: give an absolute path without control "
            "characters, backslashes and spaces at its end."
        )


def check_shared(what: str, path: str) -> None:
    """Raise ValueError for a path that a job would not find."""
    for folder in PRIVATE_FOLDERS:
        if os.path.commonpath([folder, os.path.normpath(path)]) == folder:
            raise ValueError(f"{what} is below {folder}, of which a job has its own: put it into another folder.")


def check_address(option: str, address: str) -> None:
    """Raise ValueError for what is neither a host name nor an address."""
    if not HOST.fullmatch(address):
        raise ValueError(
            f"{option} is {address!r}, which is not a host name or an address: take letters, digits, '.', ':', '-' "
            "and '_'."
        )


def check_group(name: str) -> None:
    """Raise ValueError for what is neither a group's name nor its number."""
    if not (USER.fullmatch(name) or name.isdecimal()):
        raise ValueError(f"Group {name!r} is not a name of a group: take lower-case letters, digits, '-' and '_'.")


def outlives_a_node(nodes: int, spares: int, min_nodes: Optional[int]) -> bool:
    """Whether a job that is given ``nodes`` goes on when it loses one, with a spare or with fewer."""
    return spares > 0 or min_nodes not in (None, nodes)


def _digest(value: Any) -> str:
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

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> JobSpec:
        """Build and check a specification from a module's parameters."""
        values = {item.name: params[item.name] for item in fields(cls)}
        for name in ("nodes", "environment_files", "command"):
            values[name] = tuple(values[name] or ())
        values["config"] = values["config"] or {}
        values["environment"] = {key: str(value) for key, value in (values["environment"] or {}).items()}
        spec = cls(**values)
        spec.check()
        return spec

    def check(self) -> None:
        """Raise ValueError, in one sentence, for a job that cannot run anywhere."""
        check_name(self.name)
        if not self.nodes:
            raise ValueError(f"Job {self.name} has no nodes: list the inventory names of its nodes in 'nodes'.")
        if len(set(self.nodes)) != len(self.nodes):
            raise ValueError(f"Job {self.name} names a node twice in 'nodes': list each node once.")
        if not HOST.fullmatch(self.head_address or ""):
            raise ValueError(
                f"Head address {self.head_address!r} is not a host name or an address: set 'head_address' to "
                "the address at which all nodes reach the first one."
            )
        for option, least, most in (
            ("processes_per_node", 1, 1024),
            ("rdzv_port", 1024, 65535),
            ("max_restarts", 0, 1000),
            ("stop_timeout", 1, 86400),
        ):
            value = getattr(self, option)
            if not least <= value <= most:
                raise ValueError(f"{option} is {value}, but must be from {least} to {most}.")
        self._check_replacement()
        self._check_command()
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads is {self.threads}, but must be at least 1 (or left out).")
        if not USER.fullmatch(self.user):
            raise ValueError(
                f"User {self.user!r} is not a name of a user: take lower-case letters, digits, '-' and '_'."
            )
        if "output_dir" in self.config:
            raise ValueError(
                "config.output_dir is set by this module to the job's own folder: leave it out, and use "
                "'jobs_dir' to keep jobs elsewhere."
            )
        for key, value in self.environment.items():
            if not VARIABLE.fullmatch(key) or UNPRINTABLE.search(value.replace("\t", " ")):
                raise ValueError(
                    f"Environment variable {key!r} cannot be set: a name has letters, digits and '_', and a "
                    "value has one line without control characters."
                )
        secret = secret_problem(self.environment, self.command, {"config": self.config})
        if secret is not None:
            raise ValueError(secret)
        check_path("venv", self.venv)
        for path in self.environment_files:
            check_path("environment_files", path)

    def _check_command(self) -> None:
        if self.chdir is not None and not self.command:
            raise ValueError(
                f"Job {self.name} has chdir {self.chdir!r} and no command: chdir is the folder that a command runs in, "
                "so give both or leave it out."
            )
        if not self.command:
            return
        if self.config:
            raise ValueError(
                f"Job {self.name} has both config and command: give config for the trainer's own jobs, or command for "
                "a script of your own."
            )
        if not self.command[0]:
            raise ValueError(
                "command begins with an empty word: give the path of a script first, and its arguments after it."
            )
        for word in self.command:
            if UNPRINTABLE.search(word.replace("\t", " ")):
                raise ValueError(
                    f"command has the word {word!r}, which cannot be written into a unit: take out control characters."
                )
        if self.chdir is not None:
            check_path("chdir", self.chdir)
            check_shared(f"The folder {self.chdir} of chdir", self.chdir)
        script = str(self.script)
        if not script.startswith("/"):
            raise ValueError(
                f"command begins with {self.command[0]!r}, which is not an absolute path: give one, or set chdir to "
                "the folder that it is in."
            )
        check_path("The script of command", script)
        check_shared(f"The script {script} of command", script)

    def _check_replacement(self) -> None:
        working = len(self.nodes) - self.spares
        if not 0 <= self.spares < len(self.nodes):
            raise ValueError(
                f"spares is {self.spares}, but job {self.name} has {len(self.nodes)} nodes: leave at least one to work."
            )
        if self.min_nodes is not None and not 1 <= self.min_nodes <= working:
            raise ValueError(
                f"min_nodes is {self.min_nodes}, but must be from 1 to {working}, the nodes that are no spares."
            )
        if self.replaces and not self.max_restarts:
            raise ValueError(
                f"Job {self.name} is to go on without a node that is lost, which is a restart of the others: set "
                "max_restarts to at least 1."
            )

    @property
    def script(self) -> Optional[str]:
        """The path of the user's script; None for a job of the trainer's own."""
        return os.path.join(self.chdir or "", self.command[0]) if self.command else None

    @property
    def replaces(self) -> bool:
        """Whether the job goes on when it loses a node, with a spare or without."""
        return outlives_a_node(len(self.nodes), self.spares, self.min_nodes)

    @property
    def nnodes(self) -> str:
        """How many nodes work, as torchrun wants it."""
        most = len(self.nodes) - self.spares
        least = most if self.min_nodes is None else self.min_nodes
        return str(most) if least == most else f"{least}:{most}"

    def check_cards(self, cards: Optional[int]) -> None:
        """Raise ValueError when a node has fewer cards than the job has processes there."""
        if cards is not None and self.processes_per_node > cards:
            raise ValueError(
                f"Job {self.name} wants {self.processes_per_node} processes on this node, which has {cards} "
                f"card{'' if cards == 1 else 's'}: set processes_per_node to at most {cards}."
            )

    def as_dict(self) -> dict[str, Any]:
        """The specification as plain data, as it is kept in job.json."""
        values: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        # Left out, a job is the one it was before there was the option.
        for name in ("spares", "min_nodes", "command", "chdir", "container"):
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
        return _digest(self.as_dict())

    @property
    def config_sha256(self) -> str:
        """Identity of the training itself: checkpoints of one are of no use to another."""
        if self.command:
            return _digest({"command": [self.script, *self.command[1:]], "chdir": self.chdir})
        return _digest(dict(self.config))

    @property
    def rdzv_id(self) -> str:
        """Under which the nodes of this job, and no others, meet."""
        return f"{self.name}-{self.sha256[:8]}"
