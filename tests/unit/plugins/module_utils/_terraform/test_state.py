"""Clusters out of outputs and states: what becomes of a whole one, and how one that is not whole is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import (
    build_inventory,
    check_state,
    cluster_from_outputs,
    read_json,
)

from ...clusters import endpoint, intent, nodes, outputs, resource, state

NAMES = ["big-01", "big-02", "big-monitor"]
MACHINES = (nodes("big-01", "big-02"), resource("aws_instance", "monitor", {"index_key": 0, "attributes": {}}))


def cluster(*arguments: Any, **about: Any) -> Any:
    return cluster_from_outputs(outputs(*arguments, **about), "here", "'terraform apply'")


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
    built = build_inventory([cluster_from_outputs(said, "here", "again")])
    assert (built.groups["gaudi"], built.groups["gaudi_head"]) == (["big-02", "big-01"], ["big-02"])


def test_without_a_monitor_the_head_monitors() -> None:
    assert build_inventory([cluster(monitor=False)]).groups["monitoring"] == ["big-01"]


def test_ssh_by_a_clouds_own_service() -> None:
    said = outputs(ssh_arguments="-o ProxyCommand=x")
    said["cluster_endpoints"]["value"]["big-01"]["connect_to"] = "i-5"
    known = build_inventory([cluster_from_outputs(said, "here", "again")]).hosts["big-01"]
    assert (known["ansible_host"], known["gaudi_cluster_address"]) == ("i-5", "10.42.16.5")
    assert known["ansible_ssh_common_args"] == "-o ProxyCommand=x"


def test_further_variables_of_a_cloud_are_those_of_its_group() -> None:
    said = outputs("ibm")
    said["cluster"]["value"]["variables"] = {"gaudi_checkpoint_endpoint": "https://s3.example.org"}
    built = build_inventory([cluster_from_outputs(said, "here", "again")])
    assert built.group_vars["ibm"]["gaudi_checkpoint_endpoint"] == "https://s3.example.org"


def test_root_needs_not_become_root() -> None:
    said = outputs()
    for each in said["cluster_endpoints"]["value"].values():
        each["ssh_user"] = "root"
    assert build_inventory([cluster_from_outputs(said, "here", "again")]).hosts["big-01"]["ansible_become"] is False


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


def check(held: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as told:
        check_state(held, "here", "'terraform apply'")
        cluster_from_outputs(held["outputs"], "here", "'terraform apply'")
    return str(told.value)


def test_a_whole_state_is_whole() -> None:
    held = state(outputs(), intent(NAMES, 3), *MACHINES)
    check_state(held, "here", "'terraform apply'")
    assert cluster_from_outputs(held["outputs"], "here", "again") == cluster()


def test_an_autoscaled_state_is_whole_with_as_many_hosts_as_were_asked_for() -> None:
    check_state(state(outputs(), intent([], 3)), "here", "'terraform apply'")
    assert check(state(outputs(), intent([], 4))) == (
        "here is half applied, with 3 of 4 hosts: finish it with 'terraform apply', or bring it up to date with "
        "'terraform apply -refresh-only'."
    )


def without(name: str) -> dict[str, Any]:
    said = copy.deepcopy(outputs())
    del said["cluster_endpoints"]["value"][name]
    return said


def with_node(name: str, **more: Any) -> dict[str, Any]:
    said = copy.deepcopy(outputs())
    said["cluster_endpoints"]["value"][name] = endpoint("worker", "10.42.16.7", **more)
    return said


@pytest.mark.parametrize(
    ("held", "sentence"),
    [
        (state({}), "here holds no machines: make them first, with 'terraform apply'."),
        (
            state({}, *MACHINES),
            "here is half applied, with 3 resources and no outputs: finish it with 'terraform apply', or remove what "
            "is there with 'terraform destroy'.",
        ),
        (
            state(outputs(), intent(NAMES, 3), nodes("big-01", status="tainted")),
            'here is half applied, as module.cluster.aws_instance.node["big-01"] was not made to its end: replace it '
            "with 'terraform apply'.",
        ),
        (
            state(outputs(), intent([*NAMES, "big-03"], 4), *MACHINES),
            "here is half applied: asked for and not there is big-03, there and no longer asked for is nothing; finish "
            "it with 'terraform apply'.",
        ),
        (
            state(with_node("big-03"), intent(NAMES, 3), *MACHINES),
            "here is half applied: asked for and not there is nothing, there and no longer asked for is big-03; finish "
            "it with 'terraform apply'.",
        ),
        (
            state(without("big-02"), *MACHINES),
            "here is half applied: its cluster has 2 nodes, and 1 have addresses; finish it with 'terraform apply'.",
        ),
        (
            state(with_node("big-02", private_ip=""), *MACHINES),
            "here is half applied, as big-02 has no address yet: finish it with 'terraform apply'.",
        ),
        (
            state({"vpc": {"value": "vpc-1"}}),
            "here has no output cluster_endpoints: give a project of terraform/aws, azure, gcp, ibm or onprem, or pass "
            "their outputs on in yours.",
        ),
    ],
    ids=["empty", "no outputs", "tainted", "node missing", "node left", "no endpoint", "no address", "another's"],
)  # fmt: skip
def test_what_is_not_whole_is_told(held: dict[str, Any], sentence: str) -> None:
    if "output cluster_endpoints" in sentence:
        with pytest.raises(Refusal) as told:
            cluster_from_outputs({"cluster": outputs()["cluster"], **held["outputs"]}, "here", "again")
        assert str(told.value) == sentence
    else:
        assert check(held) == sentence


@pytest.mark.parametrize(("text", "is_what"), [("", "JSON"), ("[gaudi]\nnode-1", "JSON"), ("[1]", "an object")])
def test_what_is_no_state(text: str, is_what: str) -> None:
    with pytest.raises(Refusal) as told:
        read_json(text, "hosts.ini")
    assert str(told.value) == (
        f"hosts.ini is not {is_what}: give a state file, or what 'terraform output -json' printed."
    )
