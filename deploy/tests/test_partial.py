"""What a failed `up` has left is listed from Terraform's state, of every cloud, with its price."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gaudi3_deploy import partial
from gaudi3_deploy.collection._terraform.state import Resource, State
from gaudi3_deploy.commands.provision import Bill
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.estimate import Price
from gaudi3_deploy.record import Deployment, Period
from gaudi3_deploy.runs import Run, refuse_price


def machine(kind: str, key: str, **attributes: Any) -> Resource:
    """A node in a state."""
    return Resource(f'module.cluster.{kind}.node["{key}"]', kind, False, {"id": f"id-{key}", **attributes}, ())


NIC = {"virtual_network_interface": [{"primary_ip": [{"address": "10.0.0.4"}]}]}


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (
            machine("aws_instance", "d-01", tags={"Name": "d-01"}, private_ip="10.0.0.1", instance_type="t"),
            {"name": "d-01", "address": "10.0.0.1", "type": "t"},
        ),
        (
            machine("azurerm_linux_virtual_machine", "d-01", name="d-01", private_ip_address="10.0.0.2", size="t"),
            {"name": "d-01", "address": "10.0.0.2", "type": "t"},
        ),
        (
            machine(
                "google_compute_instance", "d-01", name="d-01", network_interface=[{"network_ip": "10.0.0.3"}],
                machine_type="t",
            ),
            {"name": "d-01", "address": "10.0.0.3", "type": "t"},
        ),
        (
            machine("ibm_is_instance", "d-01", name="d-01", primary_network_attachment=[NIC], profile="t"),
            {"name": "d-01", "address": "10.0.0.4", "type": "t"},
        ),
        # One that was cut off has no more than its id.
        (machine("aws_instance", "d-01"), {"name": "d-01", "address": "", "type": ""}),
        (
            machine("ibm_is_instance", "d-01", primary_network_attachment=[]),
            {"name": "d-01", "address": "", "type": ""},
        ),
    ],
    ids=["aws", "azure", "gcp", "ibm", "cut off", "cut off on ibm"],
)  # fmt: skip
def test_each_cloud_s_machines(resource: Resource, expected: dict[str, str]) -> None:
    assert partial.machines(State((resource,), {})) == [{**expected, "id": "id-d-01", "role": "node"}]


def report(tmp_path: Path, usd: float | None, *resources: Resource) -> list[str]:
    """What is said of a state with one node that is paid for."""
    deployment = Deployment("d", tmp_path, "aws", "applying", [Period(0.0, 1, "t", usd)])
    said: list[str] = []
    partial.report(deployment, State(resources, {}), usd, said.append)
    return said


def test_a_price_that_is_not_known_is_asked_for(tmp_path: Path) -> None:
    node = machine("aws_instance", "d-01", tags={"Name": "d-01"})
    assert report(tmp_path, None, node)[1] == (
        "1 node(s) run and cost money, at a price that is not known: give yours with --price"
    )
    assert report(tmp_path, 12.5, node)[1] == "1 node(s) run and cost money, 12.50 USD per hour"
    assert partial.read(Deployment("d", tmp_path, "aws")) == ["d-01"]


def test_a_group_that_goes_on_buying_is_named(tmp_path: Path) -> None:
    kind = "aws_autoscaling_group"
    group = Resource(f"module.cluster.{kind}.nodes[0]", kind, False, {"id": "d-1", "desired_capacity": 2}, ())
    gateway = Resource("module.cluster.aws_nat_gateway.cluster[0]", "aws_nat_gateway", False, {"id": "nat-1"}, ())
    assert report(tmp_path, 12.5, group, gateway)[1] == (
        "module.cluster.aws_autoscaling_group.nodes[0] (d-1) goes on trying, and buys machines when there are some: "
        "only its end stops that"
    )


def test_what_is_billed_beside_the_nodes_has_no_price_but_the_user_s() -> None:
    price = Price(60.0, "60.00 USD per node and hour, as given")
    unknown = Bill(price, 2, "t", ["1 gateway", "traffic"])
    assert unknown.sentences()[2:] == [
        "billed beside the nodes, and not in this price: 1 gateway, traffic; give yours with --price-beside"
    ]
    assert unknown.as_dict()["usd_per_hour_all_in"] is None
    known = Bill(price, 2, "t", ["1 gateway", "traffic"], 1.5)
    assert known.sentences()[2:] == [
        "billed beside the nodes: 1 gateway, traffic: 1.50 USD per hour, as given", "all in: 121.50 USD per hour",
    ]  # fmt: skip
    assert known.as_dict()["usd_per_hour_all_in"] == 121.5
    assert Bill(Price(None, "unknown"), 2, "t", ["1 gateway"], 1.5).all_in is None


def test_a_run_s_limit_counts_it_where_it_is_given() -> None:
    refuse_price(60.0, "", 130.0, 2 * 3600, 1)
    with pytest.raises(UsageError, match=r"1 node\(s\) and what is beside them for 2 hours cost 140\.00 USD, which is"):
        refuse_price(60.0, "", 130.0, 2 * 3600, 1, beside=10.0)
    run = Run("job.yml", "", ["job"], 130.0, 7200.0, "results", began=1000.0, beside=10.0)
    assert run.spent([Period(1000.0, 1, "t", 60.0)], now=4600.0) == 70.0
