"""What Slurm's files say of Gaudi nodes."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import conf

CLUSTER = conf.Cluster("gaudi", "head", "10.0.0.1", stop_timeout=300)
NODES = [
    conf.ComputeNode("gaudi-1", "10.0.0.11", 160, 1_000_000),
    conf.ComputeNode("gaudi-2", "10.0.0.12", 96, 500_000),
]


def test_nodes_have_their_cards_and_jobs_time_to_save() -> None:
    lines = "".join(conf.cluster_files(CLUSTER, NODES).values()).splitlines()
    assert "NodeName=gaudi-1 NodeAddr=10.0.0.11 CPUs=160 RealMemory=1000000 Gres=gpu:gaudi3:8" in lines
    assert "SlurmctldHost=head(10.0.0.1)" in lines
    assert {"KillWait=300", "GresTypes=gpu", "DefMemPerCPU=5208", "PrologFlags=Alloc"} <= set(lines)
    assert all(re.fullmatch(r"#.*|include \S+|[A-Za-z]+=\S+( [A-Za-z]+=\S+)*", line) for line in lines)


@pytest.mark.parametrize("name", ["a b", "a\nSlurmUser=root", "", "-a", "a=b"])
def test_a_name_that_would_write_another_line_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="cannot be a name in slurm"):
        conf.cluster_files(CLUSTER, [conf.ComputeNode(name, "10.0.0.1", 1, 1)])


@pytest.mark.parametrize(
    ("cluster", "node", "said"),
    [
        ({}, {"name": "default"}, "A node is called default, which slurm.conf takes for a word of its own: rename it"),
        ({}, {"name": "ALL"}, "A node is called ALL, which slurm.conf takes for a word of its own"),
        ({"name": "a" * 41}, {}, "slurm_cluster_name has 41 characters, and slurmdbd takes 40"),
        ({"stop_timeout": -5}, {}, "slurm_stop_timeout is -5, and slurmctld takes 1 to 65533 (seconds): give one"),
        ({"health_interval": 10**6}, {}, "slurm_health_interval is 1000000, and slurmctld takes 0 to 65533"),
        ({}, {"processors": -4}, "slurm_processors of gaudi-1 is -4, and slurmctld takes 1 to 65533 (processors)"),
        ({}, {"memory": -4}, "slurm_memory of gaudi-1 is -4, and slurmctld takes 1 to"),
    ],
)
def test_what_slurmctld_would_not_start_with_is_refused(
    cluster: dict[str, Any], node: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refusal, match=re.escape(said)):
        conf.cluster_files(dataclasses.replace(CLUSTER, **cluster), [dataclasses.replace(NODES[0], **node), NODES[1]])


def test_no_nodes_are_refused() -> None:
    with pytest.raises(Refusal, match="Slurm has no nodes: put hosts into the group gaudi"):
        conf.cluster_files(CLUSTER, [])


def test_cards_are_listed_by_module_and_both_files_of_a_card_go_together() -> None:
    text = conf.gres_conf({1: 0, 0: 3})
    assert text.splitlines()[1:] == [
        "Name=gpu Type=gaudi3 MultipleFiles=/dev/accel/accel3,/dev/accel/accel_controlD3 Flags=no_gpu_env",
        "Name=gpu Type=gaudi3 MultipleFiles=/dev/accel/accel0,/dev/accel/accel_controlD0 Flags=no_gpu_env",
    ]


def test_a_program_is_bounded_and_ends_well() -> None:
    found = conf.programs(options="--cards 8")
    assert set(found) == {"prolog", "task-prolog", "epilog", "health"}
    for name, text in found.items():
        seconds = re.search(r"^timeout -k 5 (\d+) /usr/bin/python3 -s \S+/gaudi_slurm\.py (\S+) --cards 8$", text, re.M)
        assert seconds is not None and seconds[2] == name and int(seconds[1]) < 60
        assert text.startswith("#!/bin/sh\n") and text.endswith("\nexit 0\n")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("slurm-wlm 22.05.8", ""),
        ("slurm-wlm 24.11.5", ""),
        ("slurm-wlm 26.05.5", ""),
        ("slurm 25.05.2", "Slurm 25.05 is known here from its documents alone, and 22.05, 24.11 and 26.05 were run"),
        ("slurm 23.02.1", "Slurm 23.02 is not known here"),
    ],
)
def test_a_release_that_was_not_run_is_said_to_be_so(said: str, problem: str) -> None:
    found = conf.version_problem(said)
    assert found.startswith(problem) and bool(found) == bool(problem) and found.count(".\n") == 0


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("slurm-wlm 22.05.8", ""),
        ("slurm 26.05.5", ""),
        ("slurm-wlm 21.08.5", "Slurm is 21.08, and 22.05 to 26.05 are known here: install one of these."),
        ("slurm 26.11.0", "Slurm is 26.11, and 22.05 to 26.05 are known here: install one of these."),
        ("slurmd: command not found", "slurmd does not say which release it is: install Slurm 22.05 to 26.05."),
    ],
)
def test_another_release_is_refused(said: str, refused: str) -> None:
    assert conf.version_refusal(said) == refused


def test_only_what_slurm_reads_again_is_in_the_second_file() -> None:
    files = conf.cluster_files(CLUSTER, NODES)
    assert set(files) == {"slurm.conf", "gaudi-read-again.conf", "cgroup.conf"}
    assert files["slurm.conf"].endswith("\ninclude /etc/slurm/gaudi-read-again.conf\n")
    later = dataclasses.replace(CLUSTER, stop_timeout=600, health_interval=60)
    changed = {name for name, text in conf.cluster_files(later, NODES).items() if text != files[name]}
    assert changed == {"gaudi-read-again.conf"}
    more = [*NODES, conf.ComputeNode("gaudi-3", "10.0.0.13", 160, 1_000_000)]
    assert {name for name, text in conf.cluster_files(CLUSTER, more).items() if text != files[name]} == {"slurm.conf"}


def test_a_node_has_its_own_name_and_its_cores_where_they_are_known() -> None:
    node = conf.ComputeNode("gaudi-1", "10.0.0.11", 160, 1000, 8, "ml-0017", (2, 40, 2))
    assert (
        "NodeName=gaudi-1 NodeHostname=ml-0017 NodeAddr=10.0.0.11 CPUs=160 Sockets=2 CoresPerSocket=40 "
        "ThreadsPerCore=2 RealMemory=1000 Gres=gpu:gaudi3:8\n"
    ) in conf.cluster_files(CLUSTER, [node])["slurm.conf"]


def test_without_cgroups_jobs_are_only_told_their_cards() -> None:
    files = conf.cluster_files(dataclasses.replace(CLUSTER, constrains=False, accounting=True), NODES)
    lines = files["slurm.conf"].splitlines()
    assert {
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/affinity",
        "JobAcctGatherType=jobacct_gather/linux",
        "AccountingStorageHost=10.0.0.1",
        "AccountingStorageTRES=gres/gpu",
    } <= set(lines)
    assert files["cgroup.conf"].endswith("\nConstrainDevices=no\n")


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"SlurmdTimeout": "30"}, ""),
        ({"killwait": "30"}, "slurm_settings has killwait, which the role writes itself: leave it out"),
        ({"GresTypes": "hpu"}, "slurm_settings has GresTypes, which the role writes itself: leave it out"),
        ({"A": "1\nSlurmUser=root"}, "is no line of slurm.conf"),
        ({"Include": "x"}, "slurm_settings has Include, which the role writes itself"),
    ],
)
def test_lines_of_the_site_are_added_or_refused(settings: dict[str, str], refused: str) -> None:
    cluster = dataclasses.replace(CLUSTER, settings=settings)
    if refused:
        with pytest.raises(Refusal, match=re.escape(refused)):
            conf.cluster_files(cluster, NODES)
    else:
        assert "SlurmdTimeout=30\n" in conf.cluster_files(cluster, NODES)["slurm.conf"]


def test_limits_are_kept_to_where_that_is_asked_for() -> None:
    asked = dataclasses.replace(CLUSTER, accounting=True, enforce=("associations", "limits", "qos"))
    lines = conf.cluster_files(asked, NODES)["slurm.conf"].splitlines()
    assert "AccountingStorageEnforce=associations,limits,qos" in lines
    plain = conf.cluster_files(dataclasses.replace(CLUSTER, accounting=True), NODES)["slurm.conf"]
    assert "Enforce" not in plain
    with pytest.raises(Refusal, match="slurm_enforce is set and slurm_accounting is false"):
        conf.cluster_files(dataclasses.replace(asked, accounting=False), NODES)
    with pytest.raises(Refusal, match="slurm_enforce has 'limit': give some of associations, limits"):
        conf.cluster_files(dataclasses.replace(asked, enforce=("limit",)), NODES)
    twice = dataclasses.replace(asked, settings={"AccountingStorageEnforce": "limits"})
    with pytest.raises(Refusal, match="slurm_settings has AccountingStorageEnforce, which the role writes itself"):
        conf.cluster_files(twice, NODES)


def _partitions(**changed: object) -> list[str]:
    cluster = dataclasses.replace(CLUSTER, accounting=True, enforce=["associations"], **changed)
    lines = conf.cluster_files(cluster, [dataclasses.replace(NODES[0], host="ml-1"), NODES[1]])[conf.READ_AGAIN]
    return [line for line in lines.splitlines() if line.startswith("PartitionName=")]


def test_partitions_of_teams_are_in_place_of_the_one_of_all() -> None:
    vision = {"name": "vision_x", "nodes": ["ml-1"], "accounts": ["vision", "speech"]}
    line = "PartitionName=vision_x Nodes=gaudi-1 AllowAccounts=vision,speech State=UP MaxTime=INFINITE"
    assert _partitions(partitions=[vision]) == [line], "a node by what it calls itself; nobody has a default"
    rest = "PartitionName=gaudi Nodes=ALL Default=YES State=UP MaxTime=INFINITE"
    assert _partitions(partitions=[vision, {"name": "gaudi"}]) == [line, rest]
    assert _partitions() == [rest]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"partition": "DEFAULT"}, "'DEFAULT' cannot be a partition"),
        ({"partitions": [{"name": "all"}]}, "'all' cannot be a partition"),
        ({"partitions": [{"name": "a\nSlurmUser=root"}]}, "cannot be a partition"),
        ({"partitions": [{"name": "a"}, {"name": "a"}]}, "slurm_partitions has a twice"),
        ({"partitions": [{"name": "a", "nodes": ["gaudi-9"]}]}, "partition a has the node 'gaudi-9', which is no host"),
        ({"partitions": [{"name": "a", "accounts": ["b c"]}]}, "partition a has the account 'b c'"),
        ({"partitions": [{"name": "a", "accounts": ["b"]}], "enforce": ["nojobs"]}, "keeps nobody out"),
    ],
)
def test_partitions_that_would_be_something_else_are_refused(given: dict[str, object], said: str) -> None:
    cluster = dataclasses.replace(CLUSTER, **{"accounting": True, "enforce": ["associations"], **given})  # type: ignore[arg-type]
    with pytest.raises(Refusal, match=said):
        conf.cluster_files(cluster, NODES)
