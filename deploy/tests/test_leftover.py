"""What is left of a cluster is named, on an AWS that moto plays."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from gaudi3_deploy import leftover
from gaudi3_deploy.leftover import on_aws
from moto import mock_aws

REGION = "us-east-1"
GENERATED = "20261124120000000000000001"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(leftover, "_of_ec2", lambda session, cluster: ())  # moto knows no placement groups
    with mock_aws():
        yield boto3.Session(region_name=REGION)


def group(session: Any, name: str, cluster: str) -> None:
    """A group without a machine; the next launch is a matter of its numbers."""
    ec2, scaling = session.client("ec2"), session.client("autoscaling")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    scaling.create_launch_configuration(LaunchConfigurationName=name, ImageId=image, InstanceType="m5.large")
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchConfigurationName=name,
        MinSize=0,
        MaxSize=2,
        AvailabilityZones=[f"{REGION}a"],
        Tags=[
            {"ResourceId": name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": True, "Key": k, "Value": v}
            for k, v in (("Cluster", cluster), ("ManagedBy", "terraform"))
        ],
    )


def budget(session: Any, name: str) -> None:
    """So many dollars a month."""
    limit = {"Amount": "1", "Unit": "USD"}
    about = {"BudgetName": name, "BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": limit}
    session.client("budgets").create_budget(AccountId="123456789012", Budget=about)


def test_a_group_that_goes_on_making_machines_is_left_over(session: Any) -> None:
    group(session, f"demo-{GENERATED}", "demo")
    group(session, f"other-{GENERATED}", "other")
    assert on_aws(REGION, "demo") == [f"autoscaling-group demo-{GENERATED}"]


def test_a_budget_is_left_over(session: Any) -> None:
    for cluster in ("demo", "demo-2"):
        budget(session, f"gaudi3-{cluster}-{GENERATED}")
    budget(session, "gaudi3-demo-of-somebody")
    assert on_aws(REGION, "demo") == [f"budget gaudi3-demo-{GENERATED}"]


def test_who_may_not_see_budgets_is_told_of_the_rest(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.budgets.responses import BudgetsResponse
    from moto.core.exceptions import JsonRESTError

    def refuse(self: Any) -> None:
        raise JsonRESTError("AccessDeniedException", "not you")

    monkeypatch.setattr(BudgetsResponse, "describe_budgets", refuse)
    group(session, f"demo-{GENERATED}", "demo")
    assert on_aws(REGION, "demo") == [f"autoscaling-group demo-{GENERATED}"]
