"""What role slurm sets up on a host, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import slurm, slurm_cluster

FACTS = {
    "os_family": "Debian",
    "distribution": "Debian",
    "distribution_version": "12",
    "hostname": "ml-1",
    "processor_vcpus": 160,
    "processor_count": 2,
    "processor_cores": 40,
    "processor_threads_per_core": 2,
    "memtotal_mb": 1_031_900,
}
POLICY = "slurmd:\n  Installed: (none)\n  Candidate: {}\n"


def values(**changed: Any) -> Any:
    """The variables of gaudi-1 in a cluster of three hosts."""
    names = {"head": "10.0.0.1", "gaudi-1": "10.0.0.11", "gaudi-2": "10.0.0.12"}
    hosts: dict[str, dict[str, Any]] = {
        name: {"ansible_host": address, "ansible_facts": {**FACTS, "hostname": name}, "_slurm_clock": {"stdout": "5:5"}}
        for name, address in names.items()
    }
    found: dict[str, Any] = {
        "inventory_hostname": "gaudi-1",
        "groups": {"gaudi": ["gaudi-1", "gaudi-2"], "slurm_controller": ["head"]},
        "hostvars": hosts,
        "ansible_facts": FACTS,
        "slurm_existing": False,
        "slurm_expected_cards": 8,
        "slurm_cluster_name": "gaudi",
        "slurm_partition": "gaudi",
        "slurm_partitions": [],
        "slurm_stop_timeout": 120,
        "slurm_health_interval": 300,
        "slurm_constrain_devices": True,
        "slurm_accounting": True,
        "slurm_settings": {},
        "slurm_packages": {},
        "slurm_munge_key": "",
        "_slurm_candidate": {"rc": 0, "stdout": POLICY.format("22.05.8-4")},
        **changed,
    }
    return found.get


def test_slurm_conf_has_what_the_nodes_have() -> None:
    assert slurm.problem(values()) == ""
    found = {each["path"]: each for each in slurm_cluster.files(values())}
    text = found["/etc/slurm/slurm.conf"]["content"]
    node = (
        "NodeName=gaudi-2 NodeAddr=10.0.0.12 CPUs=160 Sockets=2 CoresPerSocket=40 ThreadsPerCore=2 RealMemory=1000448 "
        "Gres=gpu:gaudi3:8"
    )
    assert node in text.splitlines()
    assert [each["restart"] for each in found.values()] == [True, False, True]
    assert [each["reload"] for each in slurm_cluster.controller_files(values())] == [False, True, False]


def test_a_team_has_its_partition() -> None:
    given = values(slurm_partitions=[{"name": "vision", "nodes": ["gaudi-2"], "accounts": ["vision"]}])
    assert "slurm_enforce to [associations, limits, qos]" in slurm.problem(given)
    enforced = {"slurm_partitions": given("slurm_partitions"), "slurm_enforce": ["associations", "limits", "qos"]}
    text = slurm_cluster.files(values(**enforced))[1]["content"]
    found = [line for line in text.splitlines() if line.startswith("PartitionName=")]
    assert found == ["PartitionName=vision Nodes=gaudi-2 AllowAccounts=vision State=UP MaxTime=INFINITE"]


@pytest.mark.parametrize(
    ("host", "packages", "secrets"),
    [
        ("gaudi-1", ["munge", "slurmd", "slurm-client"], ["slurm_munge", "slurm_database"]),
        (
            "head",
            ["munge", "slurmctld", "slurm-client", "slurmdbd", "mariadb-server"],
            ["slurm_munge", "slurm_database"],
        ),
    ],
)
def test_a_host_has_the_packages_of_its_groups(host: str, packages: list[str], secrets: list[str]) -> None:
    found = slurm_cluster.decide(values(inventory_hostname=host))
    assert (found["packages"], found["secrets"], found["controller"]) == (packages, secrets, "10.0.0.1")
    assert found["candidate"] == ["apt-cache", "policy", packages[1]]
    own = slurm_cluster.decide(values(slurm_packages={"node": ["munge", "slurm-smd-slurmd"]}, slurm_accounting=False))
    assert (own["packages"], own["secrets"]) == (["munge", "slurm-smd-slurmd"], ["slurm_munge"])


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"slurm_expected_cards": 7}, "slurm_expected_cards is 7: give 8, or how many of a node's cards are there"),
        ({"groups": {"gaudi": ["gaudi-1"]}}, "No host is in the group slurm_controller, where slurmctld runs"),
        ({"groups": {"slurm_controller": ["head"]}}, "No host is in the group gaudi, where jobs run"),
        (
            {"groups": {"gaudi": ["gaudi-1", "gaudi-3"], "slurm_controller": ["head"]}},
            "Nothing is known of gaudi-3, and slurm.conf names all nodes: run for all of them, or give gaudi-3 "
            "slurm_processors and slurm_memory.",
        ),
        ({"slurm_cluster_name": "a b"}, "'a b' cannot be a name in slurm.conf"),
        ({"slurm_settings": {"KillWait": 5}}, "slurm_settings has KillWait, which the role writes itself"),
        ({"slurm_munge_key": "short"}, "slurm_munge_key has 5 bytes: give 32 or more, or leave it empty."),
        ({"slurm_packages": {"nodes": ["x"]}}, "slurm_packages has 'nodes': its keys are node, controller and"),
        (
            {"_slurm_candidate": {"rc": 0, "stdout": POLICY.format("21.08.5-2")}},
            "slurmd of Debian 12 on gaudi-1 is 21.08.5-2, and 22.05 to 26.05 are known here: name packages of such a "
            "release in slurm_packages.",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(changed: dict[str, Any], problem: str) -> None:
    assert slurm.problem(values(**changed)).startswith(problem)


def test_a_node_that_would_be_ahead_of_the_controller_stops_all() -> None:
    found = values()
    for host, version in (("head", "22.05.8-4"), ("gaudi-2", "23.11.4-1")):
        found("hostvars")[host]["_slurm_candidate"] = {"rc": 0, "stdout": POLICY.format(version)}
    assert slurm.problem(found).startswith(
        "Slurm is 22.05 on head and 23.11 on gaudi-2, and slurmctld serves no slurmd"
    )


def test_hosts_of_a_slurm_that_is_there_have_one_key_and_one_time() -> None:
    there = {
        "slurm_existing": True,
        "_slurm_version": {"rc": 0, "stdout": "slurm 24.11.5"},
        "_slurm_munge": {"rc": 0},
    }
    assert slurm.problem(values(**there)) == ""
    hosts = values()("hostvars")
    hosts["gaudi-1"]["_slurm_key"] = {"stat": {"checksum": "1"}}
    hosts["gaudi-2"]["_slurm_key"] = {"stat": {"checksum": "2"}}
    hosts["head"]["_slurm_key"] = {"stat": {"checksum": "2"}}
    assert slurm.problem(values(**there, hostvars=hosts)).startswith(
        "/etc/munge/munge.key of gaudi-1 is another one than that of head: copy one to all hosts"
    )
    hosts = values()("hostvars")
    hosts["gaudi-2"]["_slurm_clock"] = {"stdout": "5:905"}
    assert slurm.problem(values(**there, hostvars=hosts)).startswith(
        "The clock of gaudi-2 is 900 s ahead of that of head"
    )


def test_the_secrets_become_the_key_and_the_password() -> None:
    kept = {"passwords": {"slurm_munge": {"password": "a"}, "slurm_database": {"password": "correct-horse"}}}
    assert len(slurm_cluster.munge_key(values(_slurm_secrets=kept))) == 128
    found = slurm_cluster.accounting(values(_slurm_secrets=kept, inventory_hostname="head"))
    assert "StoragePass=correct-horse\n" in found["slurmdbd"]
    assert found["settings_file"] == "/etc/mysql/mariadb.conf.d/60-slurm.cnf"
