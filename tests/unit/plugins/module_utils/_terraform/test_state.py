"""What a state has, what of it stays when machines go, and how one that is not whole is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.cluster import cluster_from_outputs
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import (
    State,
    check_state,
    read_json,
    read_state,
    values_of,
)

from ...clusters import endpoint, intent, nodes, outputs, resource, state

NAMES = ["big-01", "big-02", "big-monitor"]
MACHINES = (nodes("big-01", "big-02"), resource("aws_instance", "monitor", {"index_key": 0, "attributes": {}}))


def check(held: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as told:
        found = read_state(held)
        check_state(found, "here", "'terraform apply'")
        cluster_from_outputs(found.outputs, "here", "'terraform apply'")
    return str(told.value)


def test_a_whole_state_is_whole() -> None:
    held = state(outputs(), intent(NAMES, 3), *MACHINES)
    found = read_state(held)
    check_state(found, "here", "'terraform apply'")
    assert found.outputs == values_of(outputs())


def test_an_autoscaled_state_is_whole_with_as_many_hosts_as_were_asked_for() -> None:
    check_state(read_state(state(outputs(), intent([], 3))), "here", "'terraform apply'")
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
            cluster_from_outputs(values_of({"cluster": outputs()["cluster"], **held["outputs"]}), "here", "again")
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


def of(*resources: dict[str, Any]) -> State:
    return read_state({"resources": list(resources)})


def made(address: str, *needs: str, key: Any = None, **attributes: Any) -> dict[str, Any]:
    kind, name = address.split(".")
    instance = {"attributes": attributes, "dependencies": [f"module.cluster.{each}" for each in needs]}
    return resource(kind, name, instance if key is None else {**instance, "index_key": key})


def test_storage_stays_with_what_it_needs_and_nothing_else() -> None:
    kept = [
        made("aws_kms_key.cluster"),
        made("aws_kms_alias.cluster", "aws_kms_key.cluster"),
        made("aws_s3_bucket.checkpoints", "aws_kms_key.cluster", key=0),
        made("aws_s3_bucket_policy.checkpoints", "aws_s3_bucket.checkpoints"),
    ]
    others = [
        made("aws_cloudwatch_log_group.flow", "aws_kms_key.cluster"),
        made("aws_iam_role_policy.checkpoints", "aws_s3_bucket.checkpoints", "aws_kms_key.cluster"),
        made("aws_instance.node", "aws_vpc.cluster", key="demo-01"),
        made("aws_vpc.cluster"),
    ]
    assert of(*kept, *others).storage() == {each.address for each in of(*kept).resources}


def test_a_network_that_storage_needs_stays_and_a_log_s_bucket_goes() -> None:
    kept = [
        made("azurerm_resource_group.cluster"),
        made("azurerm_subnet.nodes", "azurerm_resource_group.cluster"),
        made("azurerm_storage_account.checkpoints", "azurerm_subnet.nodes"),
        made("terraform_data.checkpoints", "azurerm_storage_account.checkpoints"),
    ]
    others = [
        made("azurerm_linux_virtual_machine.node", "azurerm_subnet.nodes", key="demo-01"), made("terraform_data.intent")
    ]  # fmt: skip
    assert of(*kept, *others).storage() == {each.address for each in of(*kept).resources}
    account, flow = made("ibm_resource_instance.storage"), made("ibm_cos_bucket.flow", key=0)
    assert of(account, flow).storage() == {"module.cluster.ibm_resource_instance.storage"}


def test_addresses_ids_and_what_is_on_its_way_out() -> None:
    (node,) = of(
        made("aws_instance.node", key="a-01", id="i-1"),
        resource("aws_instance", "other", {"attributes": {"id": "i-2"}, "deposed": "00000001"}),
        {**made("aws_partition.current"), "mode": "data"},
    ).resources
    assert (node.address, node.id) == ('module.cluster.aws_instance.node["a-01"]', "i-1")
    assert node.configured == "module.cluster.aws_instance.node"
    assert of(made("aws_vpc.cluster")).resources[0].configured == "module.cluster.aws_vpc.cluster"
    assert read_state({}) == State()
    counted = of(made("aws_eip.nat", key=0, id="e-1"))
    assert (counted.named("aws_eip.nat"), counted.named("eip.nat")) == (counted.resources[0], None)


def test_nodes_that_are_paid_for() -> None:
    assert of(
        made("ibm_is_instance.node", key="a-01", id="1"), made("ibm_is_instance.node", key="a-02"),
        made("ibm_is_instance.monitor", key=0, id="3"), made("aws_autoscaling_group.nodes", desired_capacity=2),
    ).nodes() == 3  # fmt: skip


def test_outputs_as_terraform_prints_them_and_as_values() -> None:
    plain = {"cluster_endpoints": {"value": {"private_ip": "10.0.0.1"}}, "master_ip": "10.0.0.1"}
    assert values_of(plain) == plain
    assert values_of({name: {"value": value} for name, value in plain.items()}) == plain
    assert values_of({"head": {"sensitive": True, "type": "string", "value": "x"}}) == {"head": "x"}
    machines = {"cluster_endpoints": {"value": {"role": "head"}, "big-02": {"role": "worker"}}}
    assert values_of(machines) == machines, "a machine may be called value"
    assert values_of({}) == {}
