"""Clusters as Ansible takes them: groups, names, variables."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.cluster import Cluster, cluster_from_outputs
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.inventory import build_inventory
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import values_of

from ...clusters import outputs

NAMES = ["big-01", "big-02", "big-monitor"]


def read(said: dict[str, Any]) -> Cluster:
    return cluster_from_outputs(values_of(said), "here", "'terraform apply'")


def cluster(*arguments: Any, **about: Any) -> Cluster:
    return read(outputs(*arguments, **about))


def test_one_cluster() -> None:
    built = build_inventory([cluster()])
    assert built.groups == {
        "gaudi": ["big-01", "big-02"],
        "gaudi_head": ["big-01"],
        "monitoring": ["big-monitor"],
        "aws": NAMES,
    }
    assert built.hosts["big-02"] == {
        "ansible_host": "10.42.16.6",
        "ansible_user": "ubuntu",
        "ansible_become": True,
        "gaudi_cluster_address": "10.42.16.6",
        "gaudi_instance_id": "i-6",
        "gaudi_instance_type": "dl1.24xlarge",
        "gaudi_market": "spot",
        "gaudi_zone": "us-west-2a",
    }
    assert built.group_vars == {
        "aws": {
            "gaudi_cloud": "aws",
            "gaudi_cluster": "big",
            "gaudi_region": "us-west-2",
            "gaudi_checkpoint_target": "s3://big-1/checkpoints",
        }
    }


def test_the_nodes_keep_their_order_and_the_head_is_first() -> None:
    said = outputs()
    said["cluster"]["value"]["node_names"] = ["big-02", "big-01"]
    said["cluster_endpoints"]["value"]["big-01"]["role"] = "worker"
    said["cluster_endpoints"]["value"]["big-02"]["role"] = "head"
    built = build_inventory([read(said)])
    assert (built.groups["gaudi"], built.groups["gaudi_head"]) == (["big-02", "big-01"], ["big-02"])


def test_without_a_monitor_the_head_monitors() -> None:
    assert build_inventory([cluster(monitor=False)]).groups["monitoring"] == ["big-01"]


def test_the_way_of_ssh_is_a_host_s_argument() -> None:
    said = outputs(connection="ssm")
    said["cluster_endpoints"]["value"]["big-01"]["connect_to"] = "i-5"
    known = build_inventory([read(said)]).hosts["big-01"]
    assert (known["ansible_host"], known["gaudi_cluster_address"]) == ("i-5", "10.42.16.5")
    option, command = shlex.split(known["ansible_ssh_common_args"])
    assert (option, command.split()[:3]) == ("-o", ["ProxyCommand=aws", "ssm", "start-session"])


def test_a_configuration_of_ssh_knows_machines_by_their_ids() -> None:
    said = outputs(jump_host="ops@gate")
    said["cluster_endpoints"]["value"]["big-02"]["instance_id"] = None
    hosts = build_inventory([read(said)], config="/with space/config").hosts
    config = "-F '/with space/config' -o ProxyJump=ops@gate"
    assert [hosts[name]["ansible_ssh_common_args"] for name in ("big-01", "big-02")] == [
        f"{config} -o HostKeyAlias=i-5", config
    ]  # fmt: skip


def test_further_variables_of_a_cloud_are_those_of_its_group() -> None:
    said = outputs("ibm")
    said["cluster"]["value"]["variables"] = {"gaudi_checkpoint_endpoint": "https://s3.example.org"}
    built = build_inventory([read(said)])
    assert built.group_vars["ibm"]["gaudi_checkpoint_endpoint"] == "https://s3.example.org"


def test_root_needs_not_become_root() -> None:
    said = outputs()
    for each in said["cluster_endpoints"]["value"].values():
        each["ssh_user"] = "root"
    assert build_inventory([read(said)]).hosts["big-01"]["ansible_become"] is False


def test_two_clouds_side_by_side() -> None:
    built = build_inventory([cluster("aws"), cluster("ibm", name="other")])
    assert built.groups["gaudi"] == ["big-01", "big-02", "other-01", "other-02"]
    assert built.groups["gaudi_head"] == ["big-01"]
    assert built.groups["ibm"] == ["other-01", "other-02", "other-monitor"]
    assert built.group_vars["ibm"]["trainer_nodes"] == ["other-01", "other-02"]
    assert built.group_vars["ibm"]["trainer_head"] == "other-01"


def test_names_that_clash_get_their_clouds_in_front() -> None:
    built = build_inventory([cluster("aws"), cluster("ibm")])
    assert built.groups["gaudi"] == ["aws-big-01", "aws-big-02", "ibm-big-01", "ibm-big-02"]
    assert built.group_vars["aws"]["trainer_head"] == "aws-big-01"


@pytest.mark.parametrize(
    ("given", "groups"),
    [([None, None], {"aws_big", "aws_big_2"}), (["spare", None], {"spare", "aws_big"}), (["a", "a"], {"a", "a_2"})],
)
def test_two_clusters_of_one_cloud_are_told_apart(given: list[str | None], groups: set[str]) -> None:
    built = build_inventory([cluster(), cluster()], given)
    assert set(built.groups) - {"gaudi", "gaudi_head", "monitoring", "aws"} == groups
    assert len(built.hosts) == 6
    assert len(built.groups["aws"]) == 6
