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
from dataclasses import dataclass, field
from typing import Any

from .._refusal import Refusal

GRES, TYPE = "gpu", "gaudi3"
HEADER = "# Written by Ansible (gaudi3.scale.slurm): changes made here are lost.\n"
#: Beside slurm.conf: what may change without a restart.
READ_AGAIN = "gaudi-read-again.conf"
#: Files of the programs that Slurm calls.
FOLDER = "/usr/local/lib/gaudi-slurm"
#: Seconds for each program that Slurm calls; slurmd kills a health check after 60 (seen with 22.05.8).
LIMITS = {"prolog": 45, "task-prolog": 20, "epilog": 45, "health": 55}
#: Words of AccountingStorageEnforce.
ENFORCED = ("associations", "limits", "nojobs", "nosteps", "qos", "safe", "wckeys")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
#: Longer, and tables of slurmdbd have names that MariaDB refuses.
LONGEST_CLUSTER = 40
#: slurm.conf takes them for words of its own as a NodeName.
_WORDS = ("default", "all")
#: slurmctld does not start with a number outside, and counts most of them in 16 bits.
MOST = 65533
#: A partition called default would only say what others have.
_PARTITION = re.compile(r"(?!(?i:default|all)$)[A-Za-z0-9][A-Za-z0-9_.-]*")
_ACCOUNT = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
#: Releases of Slurm that were run, and those that are known from their documents.
RUN, READ = ("22.05", "24.11", "26.05"), ("23.11", "24.05", "25.05", "25.11")


@dataclass(frozen=True)
class ComputeNode:
    """A node as slurm.conf has it; memory in MB."""

    name: str
    address: str
    processors: int
    memory: int
    cards: int = 8
    host: str = ""
    """What the machine itself calls its host, where that is not the name."""
    topology: tuple[int, int, int] = (0, 0, 0)
    """Sockets, cores of each, threads of each core; zeros where only the number of processors is known."""


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
    partition: str = "gaudi"
    """The default one."""
    partitions: Sequence[Mapping[str, Any]] = ()
    """Those with ``name``, ``nodes`` and ``accounts``; empty for ``partition`` alone, with all nodes."""
    constrains: bool = True
    """Whether cgroups keep jobs off other jobs' cards; without, Slurm only tells a job which are its own."""
    accounting: bool = False
    """Whether slurmdbd on the controller keeps what jobs used."""
    enforce: Sequence[str] = ()
    """What slurmctld keeps jobs to, of ``ENFORCED``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """More lines of slurm.conf, by name."""


def cluster_files(cluster: Cluster, nodes: Sequence[ComputeNode]) -> dict[str, str]:
    """Files below /etc/slurm by name, the same on all hosts; Refusal for what would write another line into them.

    Slurm's documents ask for a restart where what stands in ``slurm.conf`` changes: nodes, plugins, addresses. What
    stands in ``READ_AGAIN`` takes effect by ``scontrol reconfigure``.
    """
    include = f"# Changes of these need no restart.\ninclude /etc/slurm/{READ_AGAIN}"
    found = {
        "slurm.conf": [*_restarted(cluster, nodes), include],
        READ_AGAIN: _read_again(cluster, nodes),
    }
    texts = {name: HEADER + "\n".join(lines) + "\n" for name, lines in found.items()}
    constrain = "yes" if cluster.constrains else "no"
    return {**texts, "cgroup.conf": f"{HEADER}CgroupPlugin=autodetect\nConstrainDevices={constrain}\n"}


def _restarted(cluster: Cluster, nodes: Sequence[ComputeNode]) -> list[str]:
    """Lines whose change needs a restart."""
    if not nodes:
        raise Refusal("Slurm has no nodes: put hosts into the group gaudi")
    _check_names(cluster, nodes)
    _check_numbers(cluster, nodes)
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
        f"GresTypes={GRES}",
        *_plugins(cluster),
        "PrologFlags=Alloc",
        "HealthCheckNodeState=ANY",
        *(_node_line(node) for node in nodes),
    ]
    return [*lines, *_own_settings(cluster, lines)]


def _check_names(cluster: Cluster, nodes: Sequence[ComputeNode]) -> None:
    names = (cluster.name, cluster.controller, *(node.name for node in nodes))
    for text in (*names, *(node.host for node in nodes if node.host)):
        if not _NAME.fullmatch(text):
            raise Refusal(f"{text!r} cannot be a name in slurm.conf: use letters, digits, '.' and '-'")
    for node in nodes:
        if node.name.lower() in _WORDS:
            raise Refusal(f"A node is called {node.name}, which slurm.conf takes for a word of its own: rename it")
    if len(cluster.name) > LONGEST_CLUSTER:
        raise Refusal(
            f"slurm_cluster_name has {len(cluster.name)} characters, and slurmdbd takes {LONGEST_CLUSTER}: give a "
            "shorter one"
        )


def _check_numbers(cluster: Cluster, nodes: Sequence[ComputeNode]) -> None:
    """Refuse what slurmctld would not start with."""
    given = {
        "slurm_stop_timeout": (cluster.stop_timeout, 1, MOST, "seconds"),
        "slurm_health_interval": (cluster.health_interval, 0, MOST, "seconds, 0 for never"),
    }
    for node in nodes:
        given[f"slurm_processors of {node.name}"] = (node.processors, 1, MOST, "processors")
        given[f"slurm_memory of {node.name}"] = (node.memory, 1, 2**40, "MB")
    for name, (value, least, most, unit) in given.items():
        if not least <= value <= most:
            raise Refusal(f"{name} is {value}, and slurmctld takes {least} to {most} ({unit}): give one of these")


def _node_line(node: ComputeNode) -> str:
    host = f"NodeHostname={node.host} " if node.host and node.host != node.name else ""
    sockets, cores, threads = node.topology
    boards = f"Sockets={sockets} CoresPerSocket={cores} ThreadsPerCore={threads} " if all(node.topology) else ""
    return (
        f"NodeName={node.name} {host}NodeAddr={node.address} CPUs={node.processors} {boards}RealMemory={node.memory} "
        f"Gres={GRES}:{TYPE}:{node.cards}"
    )


def _plugins(cluster: Cluster) -> list[str]:
    """How jobs are held together, and what is kept of them."""
    lines = [
        f"ProctrackType=proctrack/{'cgroup' if cluster.constrains else 'linuxproc'}",
        f"TaskPlugin={'task/cgroup,task/affinity' if cluster.constrains else 'task/affinity'}",
    ]
    unknown = [each for each in cluster.enforce if each not in ENFORCED]
    if unknown:
        raise Refusal(f"slurm_enforce has {unknown[0]!r}: give some of {', '.join(ENFORCED)}.")
    if cluster.enforce and not cluster.accounting:
        raise Refusal(
            "slurm_enforce is set and slurm_accounting is false: without slurmdbd there are no limits to keep."
        )
    if cluster.accounting:
        lines += [
            "AccountingStorageType=accounting_storage/slurmdbd",
            f"AccountingStorageHost={cluster.controller_address}",
            f"AccountingStorageTRES=gres/{GRES}",
            "JobAcctGatherType=jobacct_gather/linux",
            *([f"AccountingStorageEnforce={','.join(cluster.enforce)}"] if cluster.enforce else []),
        ]
    return lines


def _read_again(cluster: Cluster, nodes: Sequence[ComputeNode]) -> list[str]:
    """Lines that the daemons read again by ``scontrol reconfigure``."""
    lines = [
        f"DefMemPerCPU={min(node.memory // node.processors for node in nodes)}",
        f"Prolog={cluster.folder}/prolog",
        f"TaskProlog={cluster.folder}/task-prolog",
        f"Epilog={cluster.folder}/epilog",
        "# A trainer that is told to stop has this long to save.",
        f"KillWait={cluster.stop_timeout}",
        "JobRequeue=1",
        "# A node that was lost comes back by itself, unless it was drained.",
        "ReturnToService=2",
        f"HealthCheckProgram={cluster.folder}/health",
        f"HealthCheckInterval={cluster.health_interval}",
        *_partition_lines(cluster, nodes),
    ]
    _own_settings(cluster, lines)
    return lines


def _partition_lines(cluster: Cluster, nodes: Sequence[ComputeNode]) -> list[str]:
    """A line for each partition; Refusal for one that Slurm would take for something else."""
    known = {node.host: node.name for node in nodes} | {node.name: node.name for node in nodes}
    lines: dict[str, str] = {}
    for each in cluster.partitions or [{"name": cluster.partition}]:
        name = str(each.get("name") or "")
        if not _PARTITION.fullmatch(name):
            raise Refusal(
                f"{name!r} cannot be a partition: use letters, digits, '-', '_' and '.', and neither default nor all"
            )
        if name in lines:
            raise Refusal(f"slurm_partitions has {name} twice: keep one")
        among = [str(node) for node in each.get("nodes") or ()]
        unknown = next((node for node in among if node not in known), None)
        if unknown is not None:
            raise Refusal(f"The partition {name} has the node {unknown!r}, which is no host of the group gaudi")
        accounts = [str(account) for account in each.get("accounts") or ()]
        odd = next((account for account in accounts if not _ACCOUNT.fullmatch(account)), None)
        if odd is not None:
            raise Refusal(f"The partition {name} has the account {odd!r}, which is none of Slurm: correct it")
        if accounts and not set(cluster.enforce) - {"nojobs", "nosteps"}:
            raise Refusal(
                f"The partition {name} has accounts, which keeps nobody out while users may name any account: set "
                "slurm_enforce to [associations, limits, qos]"
            )
        where = ",".join(dict.fromkeys(known[node] for node in among)) or "ALL"
        allowed = f" AllowAccounts={','.join(accounts)}" if accounts else ""
        default = " Default=YES" if name == cluster.partition else ""
        lines[name] = f"PartitionName={name} Nodes={where}{allowed}{default} State=UP MaxTime=INFINITE"
    return list(lines.values())


def _own_settings(cluster: Cluster, lines: Sequence[str]) -> list[str]:
    """The site's own lines; Refusal where one is written already, as Slurm takes the last without a word."""
    taken = {line.partition("=")[0].lower() for line in lines} | {"include"}
    for name, value in cluster.settings.items():
        if name.lower() in taken:
            raise Refusal(f"slurm_settings has {name}, which the role writes itself: leave it out")
        if not re.fullmatch(r"[A-Za-z]+", name) or not re.fullmatch(r"[!-\"$-~][ !-\"$-~]*", value):
            raise Refusal(f"slurm_settings has {name!r}: {value!r}, which is no line of slurm.conf: correct it")
    return [f"{name}={value}" for name, value in cluster.settings.items()]


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
    release = release_of(said)
    if not release or release in RUN or version_refusal(said):
        return ""
    if release in READ:
        return (
            f"Slurm {release} is known here from its documents alone, and {', '.join(RUN[:-1])} and {RUN[-1]} were "
            "run: try it on one node first."
        )
    return f"Slurm {release} is not known here: try it on one node first."


def version_refusal(said: str) -> str:
    """Why this release cannot serve, in one sentence; empty where it can."""
    release = release_of(said)
    if not release:
        return "slurmd does not say which release it is: install Slurm 22.05 to 26.05."
    if not min(RUN + READ) <= release <= max(RUN + READ):
        return f"Slurm is {release}, and 22.05 to 26.05 are known here: install one of these."
    return ""


def release_of(said: str) -> str:
    """The release in a version, such as 22.05 of 22.05.8-4; empty where there is none."""
    found = re.search(r"\b(\d\d\.\d\d)\b", said)
    return found[1] if found else ""
