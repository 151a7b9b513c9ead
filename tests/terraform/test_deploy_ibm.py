"""`gaudi3-deploy` on a simulated IBM Cloud: a half-made cluster is listed and completed; `down` keeps checkpoints.

The tests build on each other. Instants are counted at the service (support/deploy_workspace.py), so that a busy
machine changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from .support.deploy_workspace import DOWN, DeployWorkspace, Instant
from .support.ibm_account import ENOUGH, IbmAccount, ibm_account
from .test_deploy_kills import NAMES, whole

IbmDesk = DeployWorkspace[IbmAccount]
#: IBM publishes none: a user gives what was quoted.
PRICE = ("--price", "60")


@pytest.fixture(scope="module")
def desk(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IbmDesk]:
    """An empty account with a gate."""
    folder = tmp_path_factory.mktemp("desk")
    with ibm_account(folder, folder / "gate") as account:
        yield DeployWorkspace(folder, account)


@pytest.fixture
def account(desk: IbmDesk) -> IbmAccount:
    """The account."""
    return desk.account


def test_a_failed_up_lists_what_runs_and_what_it_costs(desk: IbmDesk, account: IbmAccount) -> None:
    fault = {"after": 2, "times": 1, "code": "no_capacity", "text": "There is no capacity"}
    account.world.set("faults", ibm_is_instance=fault)
    said = desk.run(*desk.commands.whole("up"), *PRICE, code=1)
    there = account.machines()
    assert len(there) == 2 and set(there) < set(NAMES)
    count = len(set(there) - {"cluster-monitor"})
    lines = said.splitlines()
    for name, machine in there.items():
        assert any(line.startswith(f"{name}  10.42.") and machine["InstanceId"] in line for line in lines), said
    (costs,) = (line for line in lines if " run and cost money" in line)
    monitor = "1 monitoring machine, " * ("cluster-monitor" in there)
    assert costs == (
        f"{count} node(s) run and cost money, {60 * count:.2f} USD per hour; billed beside: {monitor}1 gateway, "
        "2 buckets, 1 log, the nodes' disks, traffic, taxes"
    )
    path = desk.folder / "deployments/cluster/partial.yml"
    assert f"this is partial, and on record in {path}: run `up` again" in said
    inventory = yaml.safe_load(path.read_text())["all"]
    assert inventory["vars"] == {"gaudi_inventory_partial": True}
    hosts = {name: about for group in inventory["children"].values() for name, about in group["hosts"].items()}
    assert {name: about["gaudi_instance_id"] for name, about in hosts.items()} == {
        name: machine["InstanceId"] for name, machine in there.items()
    }
    # What `site` takes is whole or not there.
    assert not (desk.folder / "deployments/cluster/inventory/hosts.yml").exists()
    assert f"cluster is partial: {', '.join(sorted(there))}; `gaudi3-deploy up` goes on" in desk.run("status")
    periods = json.loads((desk.folder / "deployments/cluster/deployment.json").read_text())["periods"]
    assert [(each["nodes"], each["hourly_usd"], each["ended"]) for each in periods] == [(count, 60.0, None)]


def test_what_was_made_without_being_written_down_is_taken_over(desk: IbmDesk, account: IbmAccount) -> None:
    # The power goes when the missing machine was made and Terraform was not told of it.
    assert desk.cut_off(Instant("create:ibm_is_instance", 1, "power"), *desk.commands.up)
    machines = account.machines()
    (unknown,) = set(NAMES) - {each["name"] for each in known(desk)}
    said = desk.run(*desk.commands.up)
    place = "monitor[0]" if unknown == "cluster-monitor" else f'node["{unknown}"]'
    identity = machines[unknown]["InstanceId"]
    assert f"ibm_is_instance.{place} ({identity}) is there without Terraform's knowledge, and is taken over" in said
    assert account.machines() == machines
    whole(desk)
    assert not (desk.folder / "deployments/cluster/partial.yml").exists()
    assert "nothing to change" in desk.run("plan", "cluster")


def known(desk: IbmDesk) -> list[dict[str, str]]:
    """Machines in Terraform's state."""
    return [
        instance["attributes"]
        for resource in desk.state()["resources"]
        if resource["type"] == "ibm_is_instance"
        for instance in resource["instances"]
    ]


def test_down_leaves_the_checkpoints_and_nothing_else_that_is_billed(desk: IbmDesk, account: IbmAccount) -> None:
    account.put(account.bucket(), "cluster/checkpoints/step-1")
    assert desk.cut_off(Instant("delete:ibm_is_instance", 1, "power"), *DOWN)
    said = desk.run(*DOWN)
    assert f"{account.bucket()} holds checkpoints: it stays and all that guards it" in said
    assert said.splitlines()[-1] == "deployment cluster is gone, but for the storage of its checkpoints"
    assert account.everything() == {"ibm_cos_bucket": 1, "ibm_resource_instance": 1}
    said = desk.run(*DOWN, "--checkpoints")
    assert said.splitlines()[-1] == "deployment cluster is gone"
    assert account.everything() == {}


def test_all_or_none_leaves_no_half_cluster(desk: IbmDesk, account: IbmAccount) -> None:
    calls = account.world.setting("calls").get("ibm_is_instance", 0)
    fault = {"after": calls + 2, "times": 1, "code": "no_capacity", "text": "There is no capacity"}
    account.world.set("faults", ibm_is_instance=fault)
    said = desk.run(*desk.commands.whole("up"), "--all-or-none", code=1)
    assert "There is no capacity" in said
    assert account.machines() == {}
    # What the next `up` uses is there, and told of.
    assert {"ibm_is_vpc", "ibm_cos_bucket"} <= set(account.everything())
    assert "no node runs; billed beside: 1 gateway, 2 buckets, 1 log" in said
    periods = json.loads((desk.folder / "deployments/cluster/deployment.json").read_text())["periods"]
    assert periods[-1]["ended"] is not None


def test_another_zone_is_the_way_out_of_one_without_room(desk: IbmDesk, account: IbmAccount) -> None:
    """The monitoring machine is made in the first zone, and moves: nothing has ever run on it."""
    account.world.set("quota", **{**ENOUGH, "gpu": 0})
    said = desk.run(*desk.commands.up, code=1)
    assert "over_quota" in said
    (monitor,) = account.world.rows("ibm_is_instance")
    assert (monitor["name"], monitor["zone"]) == ("cluster-monitor", "us-east-2")
    account.world.set("quota", **ENOUGH)
    desk.run(*desk.commands.up, "--all-or-none", "--var", "zone=us-east-3")
    whole(desk)
    for kind in ("ibm_is_instance", "ibm_is_subnet", "ibm_is_public_gateway"):
        assert {each["zone"] for each in account.world.rows(kind)} == {"us-east-3"}, kind
    assert "nothing to change" in desk.run("plan", "cluster")


def test_down_leaves_flow_logs_and_ends_once_they_are_gone(desk: IbmDesk, account: IbmAccount) -> None:
    (flow,) = (row["bucket_name"] for row in account.world.rows("ibm_cos_bucket") if "-flow-" in row["bucket_name"])
    account.put(flow, "log")
    said = desk.run(*DOWN, "--checkpoints")
    assert f"{flow} holds flow logs: it stays, and goes on costing money" in said
    assert said.splitlines()[-1] == "deployment cluster is gone, but for its flow logs"
    assert account.everything() == {"ibm_cos_bucket": 1, "ibm_resource_instance": 1}
    account.world.drop("_object", f"{flow}/log")
    assert desk.run(*DOWN).splitlines()[-1] == "deployment cluster is gone"
    assert account.everything() == {}
