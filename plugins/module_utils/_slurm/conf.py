# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What Slurm's files say of Gaudi nodes: slurm.conf, gres.conf and cgroup.conf.

A card is a gres of the name ``gpu``: Slurm 22.05 keeps a job off the device files of a gres only where it has a plugin
for its name, which it has not for others such as ``hpu`` (seen with 22.05.8). ``Flags=no_gpu_env`` leaves out the
variables of other vendors. Cards are listed in the order of their module ids, as their indices may change at a boot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._refusal import Refusal

GRES, TYPE = "gpu", "gaudi3"
HEADER = "# Written by Ansible (gaudi3.scale.slurm): changes made here are lost.\n"
#: Files of the programs that Slurm calls.
FOLDER = "/usr/local/lib/gaudi-slurm"
#: Seconds for each program that Slurm calls; slurmd kills a health check after 60 (seen with 22.05.8).
LIMITS = {"prolog": 45, "task-prolog": 20, "epilog": 45, "health": 55}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
#: Releases of Slurm: 22.05 was run, the others are known from their documents.
RUN, READ = ("22.05",), ("23.11", "24.05", "24.11", "25.05", "25.11", "26.05")


@dataclass(frozen=True)
class ComputeNode:
    """A node as slurm.conf has it; memory in MB."""

    name: str
    address: str
    processors: int
    memory: int
    cards: int = 8


@dataclass(frozen=True)
class Cluster:
    """What slurm.conf says besides its nodes; times in seconds."""

    name: str
    controller: str
    controller_address: str
    stop_timeout: int = 120
    health_interval: int = 300
    slurm_user: str = "slurm"
    state_folder: str = "/var/lib/slurm/slurmctld"
    spool_folder: str = "/var/lib/slurm/slurmd"
    log_folder: str = "/var/log/slurm"
    run_folder: str = "/run"
    folder: str = FOLDER


def slurm_conf(cluster: Cluster, nodes: Sequence[ComputeNode]) -> str:
    """The whole file, the same on all hosts; Refusal for a name that would write another line into it."""
    if not nodes:
        raise Refusal("Slurm has no nodes: put hosts into the group gaudi")
    for text in (cluster.name, cluster.controller, *(node.name for node in nodes)):
        if not _NAME.fullmatch(text):
            raise Refusal(f"{text!r} cannot be a name in slurm.conf: use letters, digits, '.' and '-'")
    run = cluster.run_folder
    lines = [
        f"ClusterName={cluster.name}",
        f"SlurmctldHost={cluster.controller}({cluster.controller_address})",
        f"SlurmUser={cluster.slurm_user}",
        "AuthType=auth/munge",
        f"StateSaveLocation={cluster.state_folder}",
        f"SlurmdSpoolDir={cluster.spool_folder}",
        f"SlurmctldPidFile={run}/slurmctld.pid",
        f"SlurmdPidFile={run}/slurmd.pid",
        f"SlurmctldLogFile={cluster.log_folder}/slurmctld.log",
        f"SlurmdLogFile={cluster.log_folder}/slurmd.log",
        "MpiDefault=none",
        "# Jobs get cards and processors, and see no card of another job.",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        f"DefMemPerCPU={min(node.memory // node.processors for node in nodes)}",
        f"GresTypes={GRES}",
        "ProctrackType=proctrack/cgroup",
        "TaskPlugin=task/cgroup,task/affinity",
        f"Prolog={cluster.folder}/prolog",
        f"TaskProlog={cluster.folder}/task-prolog",
        f"Epilog={cluster.folder}/epilog",
        "PrologFlags=Alloc",
        "# A trainer that is told to stop has this long to save.",
        f"KillWait={cluster.stop_timeout}",
        "JobRequeue=1",
        "# A node that was lost comes back by itself, unless it was drained.",
        "ReturnToService=2",
        f"HealthCheckProgram={cluster.folder}/health",
        f"HealthCheckInterval={cluster.health_interval}",
        "HealthCheckNodeState=ANY",
        *(
            f"NodeName={node.name} NodeAddr={node.address} CPUs={node.processors} RealMemory={node.memory} "
            f"Gres={GRES}:{TYPE}:{node.cards}"
            for node in nodes
        ),
        "PartitionName=gaudi Nodes=ALL Default=YES State=UP MaxTime=INFINITE",
    ]
    return HEADER + "\n".join(lines) + "\n"


def gres_conf(modules: Mapping[int, int]) -> str:
    """The node's own file: a line for each card, by module id; ``modules`` has the index of each.

    Both device files of a card go together.
    """
    lines = [
        f"Name={GRES} Type={TYPE} MultipleFiles=/dev/accel/accel{index},/dev/accel/accel_controlD{index} "
        "Flags=no_gpu_env"
        for _module, index in sorted(modules.items())
    ]
    return HEADER + "\n".join(lines) + "\n"


def cgroup_conf(version: int) -> str:
    """How Slurm keeps jobs off other jobs' cards; ``version`` is that of the node's cgroups."""
    return HEADER + f"CgroupPlugin=cgroup/v{version}\nCgroupAutomount=no\nConstrainDevices=yes\n"


def programs(python: str = "/usr/bin/python3", folder: str = FOLDER, options: str = "") -> dict[str, str]:
    """What Slurm calls, by name: each ends well and in time, whatever becomes of the program.

    Slurm drains a node whose prolog or epilog fails, and waits for a prolog that hangs.
    """
    found = {}
    for name, seconds in LIMITS.items():
        command = f"timeout -k 5 {seconds} {python} -s {folder}/gaudi_slurm.py {name} {options}"
        found[name] = f"#!/bin/sh\n{HEADER}{command.strip()}\nexit 0\n"
    return found


def version_problem(said: str) -> str:
    """What is to be said of this release of Slurm, as ``slurmd -V`` names it; empty for one that was run."""
    found = re.search(r"\b(\d\d\.\d\d)\b", said)
    if found is None:
        return "slurmd does not say which release it is: install Slurm 22.05 or newer."
    release = found[1]
    if release in RUN:
        return ""
    if release in READ:
        return f"Slurm {release} is known here from its documents alone, and 22.05 was run: try it on one node first."
    if release < RUN[0]:
        return f"Slurm is {release}, and 22.05 is the oldest that was run: install 22.05 or newer."
    return f"Slurm {release} is not known here: try it on one node first."
