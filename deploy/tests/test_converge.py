"""What of an account is this deployment's to take over, and what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from gaudi3_deploy import converge, unchanged
from gaudi3_deploy.collection._terraform.state import Resource, State
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.leftover import Unchecked
from gaudi3_deploy.record import Deployment, Period

NETWORK = Resource("module.cluster.aws_vpc.cluster", "aws_vpc", False, {"id": "vpc-1"}, ())
STORAGE = {"aws_kms_key.cluster": "k-1", "aws_s3_bucket.checkpoints": "demo-checkpoints-1"}
MACHINE = {'aws_instance.node["demo-01"]': "i-1"}
BEYOND = {'aws_instance.node["demo-03"]': "i-3"}
SUBNET = {"aws_subnet.nodes": "subnet-1"}


def taken(
    monkeypatch: pytest.MonkeyPatch, phase: str, found: dict[str, str], *resources: Resource, nodes: int = 2
) -> tuple[dict[str, str], list[str]]:
    """What is taken over, and what is unmarked."""
    monkeypatch.setattr(converge.orphans, "on_aws", lambda region, name, state: found)
    unmarked: list[str] = []
    terraform = SimpleNamespace(
        state=lambda: State(resources, {}), adopts=True, log=lambda text: None, untaint=unmarked.append
    )
    deployment = Deployment("demo", Path("demo"), "aws", phase)
    return converge.take_over(deployment, terraform, nodes), unmarked  # type: ignore[arg-type]


def test_after_an_interrupted_run_all_that_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    found = STORAGE | MACHINE | SUBNET | BEYOND
    assert taken(monkeypatch, "applying", found, NETWORK) == (STORAGE | MACHINE | SUBNET, [])
    assert taken(monkeypatch, "applying", found, NETWORK, nodes=0)[0] == found


@pytest.mark.parametrize("phase", ["new", "stored"])
def test_before_the_first_run_the_storage_alone(monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    assert taken(monkeypatch, phase, STORAGE | SUBNET)[0] == STORAGE


@pytest.mark.parametrize("phase", ["up", "site", "ready"])
def test_after_a_run_that_came_to_its_end_nothing(monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    assert taken(monkeypatch, phase, STORAGE | SUBNET, NETWORK)[0] == {}


@pytest.mark.parametrize("phase", ["new", "applying"])
def test_another_s_machines_are_never_taken(monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    with pytest.raises(UsageError, match=r"Machines of a cluster 'demo' run in us-west-2 \(i-1\), of which this"):
        taken(monkeypatch, phase, MACHINE | STORAGE)


def test_an_account_that_cannot_be_asked_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(region: str, name: str, state: State) -> dict[str, str]:
        raise Unchecked("AccessDenied")

    monkeypatch.setattr(converge.orphans, "on_aws", refuse)
    said: list[str] = []
    terraform = SimpleNamespace(state=lambda: State((), {}), adopts=True, log=said.append)
    assert converge.take_over(Deployment("demo", Path("demo"), "aws"), terraform) == {}  # type: ignore[arg-type]
    assert said == [
        "whether anything of cluster demo is in us-west-2 that Terraform's state lacks was not checked: AccessDenied"
    ]


@pytest.mark.parametrize("runs", [True, False])
def test_marks_are_taken_from_what_is_whole(monkeypatch: pytest.MonkeyPatch, runs: bool) -> None:
    def marked(address: str) -> Resource:
        return Resource(f"module.cluster.{address}", address.partition(".")[0], True, {"id": "x"}, ())

    monkeypatch.setattr(converge, "_runs", lambda resource, region: runs)
    kinds = ("aws_kms_key.cluster", "aws_security_group.nodes", "aws_nat_gateway.cluster", "aws_instance.monitor")
    _found, unmarked = taken(monkeypatch, "applying", {}, *(marked(each) for each in kinds))
    asked = ["module.cluster.aws_nat_gateway.cluster", "module.cluster.aws_instance.monitor"]
    assert unmarked == ["module.cluster.aws_kms_key.cluster", *(asked if runs else [])]


def node(number: int, *, kind: str = "aws_instance.node", tainted: bool = False) -> Resource:
    """A machine in the state."""
    return Resource(f'{kind}["demo-{number:02}"]', kind.partition(".")[0], tainted, {"id": f"i-{number}"}, ())


def counted(deployment: Deployment, *resources: Resource, price: tuple[float | None, bool] | None = None) -> int:
    """How many nodes cost money, after a command that left these resources."""
    terraform = SimpleNamespace(state=lambda: State(resources, {}))
    converge.count(deployment, terraform, price)  # type: ignore[arg-type]
    return deployment.nodes


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What AWS has and the state lacks; nothing, until a test says so."""
    found: dict[str, str] = {}
    monkeypatch.setattr(converge.orphans, "on_aws", lambda region, name, state: found)
    return found


def test_a_node_that_terraform_does_not_know_of_costs_money(tmp_path: Path, account: dict[str, str]) -> None:
    account |= MACHINE | SUBNET | {"aws_instance.monitor[0]": "i-9"}
    assert counted(Deployment("demo", tmp_path / "demo", "aws"), NETWORK, node(2)) == 2
    assert counted(Deployment("demo", tmp_path / "other", "aws"), node(2)) == 1  # another's, without our network


def test_what_a_failed_up_has_made_is_counted_from_its_beginning(tmp_path: Path) -> None:
    deployment = Deployment("demo", tmp_path / "demo", "aws", "applying", variables={"instance_type": "box8"})
    deployment.entered = 1000.0
    monitor = Resource("aws_instance.monitor[0]", "aws_instance", False, {"id": "i-9"}, ())
    assert counted(deployment, NETWORK, monitor, price=(13.0, False)) == 0 and not deployment.periods
    assert counted(deployment, NETWORK, monitor, node(1), node(2, tainted=True), price=(13.0, False)) == 2
    assert counted(deployment, NETWORK, monitor, node(1), node(2), price=(13.0, False)) == 2
    assert deployment.periods == [Period(1000.0, 2, "box8", 13.0)]


def test_what_a_failed_down_has_ended_costs_no_more(tmp_path: Path) -> None:
    deployment = Deployment("demo", tmp_path / "demo", "aws", "up", [Period(0.0, 3, "box8", 10.0, given=True)])
    deployment.enter("destroying")
    assert counted(deployment, NETWORK, node(1)) == 1
    assert counted(deployment, NETWORK) == 0
    assert [(each.nodes, each.hourly_usd, each.given) for each in deployment.periods] == [
        (3, 10.0, True),
        (1, 10.0, True),
    ]
    assert all(each.ended for each in deployment.periods)


def test_nodes_of_a_group_and_of_other_clouds_are_counted(tmp_path: Path) -> None:
    group = Resource("aws_autoscaling_group.nodes[0]", "aws_autoscaling_group", False, {"desired_capacity": 4}, ())
    assert counted(Deployment("a", tmp_path / "a", "aws"), group) == 4
    hosts = [node(1, kind="azurerm_linux_virtual_machine.host"), node(2, kind="ibm_is_instance.node")]
    other = Resource('azurerm_linux_virtual_machine.host["demo-monitor"]', hosts[0].type, False, {"id": "m"}, ())
    assert counted(Deployment("b", tmp_path / "b", "azure"), *hosts, other) == 2
    assert counted(Deployment("c", tmp_path / "c", "onprem"), *hosts) == 0


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            {"instance_type": "p4d.24xlarge"},
            "instance_type is p4d.24xlarge, but dl1.24xlarge on demo-01, demo-02, and ",
        ),
        ({"availability_zone": "us-west-2b"}, "availability_zone is us-west-2b, but us-west-2a on demo-01, demo-02, "),
        ({"root_volume_gb": 400}, "root_volume_gb is 400, but 200 on demo-01, demo-02, and running nodes are not"),
        ({"capacity": "on-demand"}, "capacity is on-demand, but spot on demo-02, and running nodes are not changed: "),
        ({"capacity": "reservation"}, "capacity is reservation, but on-demand on demo-01 and spot on demo-02, and run"),
        ({"capacity": "spot"}, "capacity is spot, but on-demand on demo-01, and running nodes are not changed: give"),
        ({"capacity": "spot", "on_demand_nodes": 2}, "capacity is on-demand, but spot on demo-02, and running nodes"),
        ({"capacity": "spot", "on_demand_nodes": 1}, ""),
        ({"efa": False}, "efa is false, but true on demo-01, demo-02, and running nodes are not changed: give what"),
        ({"efa": True}, ""),
        ({"efa": None, "capacity": ""}, ""),
        ({"instance_type": "dl1.24xlarge", "availability_zone": "", "root_volume_gb": 200}, ""),
        ({}, ""),
    ],
)
def test_a_change_that_running_nodes_would_not_get_is_refused(asked: dict[str, object], sentence: str) -> None:
    has = {
        "instance_type": "dl1.24xlarge",
        "availability_zone": "us-west-2a",
        "root_block_device": [{"volume_size": 200}],
    }
    bought = {1: {"instance_lifecycle": ""}, 2: {"instance_lifecycle": "spot"}}
    nodes = [
        replace(node(number), attributes={**node(number).attributes, **has, **bought[number]}) for number in (1, 2)
    ]
    made = {"input": {"value": {"efa": True}, "type": ["object", {"efa": "bool"}]}}
    nodes += [replace(node(number, kind="terraform_data.node"), attributes=made) for number in (1, 2)]
    monitor = Resource("aws_instance.monitor[0]", "aws_instance", False, {"instance_type": "m5.large"}, ())
    terraform = SimpleNamespace(state=lambda: State((NETWORK, monitor, *nodes), {}))
    deployment = Deployment("demo", Path("demo"), "aws", variables=asked)
    if sentence:
        with pytest.raises(UsageError) as refused:
            unchanged.refuse_change(deployment, terraform)  # type: ignore[arg-type]
        assert str(refused.value).startswith(sentence)
        assert str(refused.value).endswith("or run `gaudi3-deploy down demo` first, which keeps checkpoints.")
    else:
        unchanged.refuse_change(deployment, terraform)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("group", "asked", "sentence"),
    [
        (
            {},
            {"instance_type": "p4d.24xlarge"},
            "instance_type is p4d.24xlarge, but dl1.24xlarge on the group's nodes, ",
        ),
        ({}, {"capacity": "spot"}, "capacity is spot, but on-demand on the group's nodes, and running nodes are not"),
        (
            {"mixed_instances_policy": [{}]},
            {"capacity": "on-demand"},
            "capacity is on-demand, but spot on the group's ",
        ),
        ({"mixed_instances_policy": [{}]}, {"capacity": "spot", "on_demand_nodes": 1}, ""),
        ({}, {"efa": False}, "efa is false, but true on the group's nodes, and running nodes are not changed: give "),
        ({}, {"instance_type": "dl1.24xlarge", "capacity": "on-demand", "efa": True, "root_volume_gb": 400}, ""),
    ],
)
def test_nor_do_the_nodes_of_a_group_change(group: dict[str, object], asked: dict[str, object], sentence: str) -> None:
    made = {"instance_type": "dl1.24xlarge", "network_interfaces": [{"interface_type": "efa"}]}
    template = Resource('module.cluster.aws_launch_template.node["on-demand"]', "aws_launch_template", False, made, ())
    nodes = Resource("module.cluster.aws_autoscaling_group.nodes[0]", "aws_autoscaling_group", False, group, ())
    terraform = SimpleNamespace(state=lambda: State((NETWORK, template, nodes), {}))
    deployment = Deployment("demo", Path("demo"), "aws", variables=asked)
    if sentence:
        with pytest.raises(UsageError) as refused:
            unchanged.refuse_change(deployment, terraform)  # type: ignore[arg-type]
        assert str(refused.value).startswith(sentence)
    else:
        unchanged.refuse_change(deployment, terraform)  # type: ignore[arg-type]
