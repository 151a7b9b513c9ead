"""What a plan is read for: the nodes that run, and the stores that hold something, which it would end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gaudi3_deploy.plan import ended_by_groups, read_plan
from gaudi3_deploy.state import State, read


def change(address: str, action: str, **more: object) -> dict[str, object]:
    """An event of `terraform plan -json`."""
    resource = {"addr": address, "resource_type": address.partition(".")[0]}
    return {"type": "planned_change", "change": {"resource": resource, "action": action, **more}}


def test_a_plan_that_ends_a_machine_is_known_as_such(tmp_path: Path) -> None:
    events = [
        change("aws_instance.node", "replace"),
        change("aws_s3_bucket.b", "delete"),
        change("aws_vpc.v", "update"),
        change("aws_eip.e", "import", importing={"id": "eipalloc-1"}),
        change("aws_subnet.s", "update", importing={"id": "subnet-1"}),
        change("aws_iam_role.r", "create"),
        {"type": "change_summary"},
        {"type": "outputs", "outputs": {"a": {"action": "noop"}}},
    ]
    plan = read_plan(events, tmp_path, State((), {}))
    assert (plan.replace, plan.delete, plan.update, plan.create, plan.adopt) == (
        ["aws_instance.node"],
        ["aws_s3_bucket.b"],
        ["aws_subnet.s", "aws_vpc.v"],
        ["aws_iam_role.r"],
        ["aws_eip.e", "aws_subnet.s"],
    )
    assert plan.nodes_lost == ["aws_instance.node"]
    assert plan.storage_lost == ["aws_s3_bucket.b"]
    assert plan.changes == 6 and not plan.empty and not plan.outputs_change
    assert read_plan(events[-1:], tmp_path, State((), {})).empty
    assert not read_plan(events[3:4], tmp_path, State((), {})).empty


@pytest.mark.parametrize(("told", "lost"), [([], []), (["i-1"], ["aws_instance.node"]), (["i-2"], [])])
def test_a_machine_that_was_never_told_of_is_no_running_node(tmp_path: Path, told: list[str], lost: list[str]) -> None:
    pulled = {
        "outputs": {"cluster_endpoints": {"value": {each: {"instance_id": each} for each in told}}},
        "resources": [
            {
                "mode": "managed",
                "type": "aws_instance",
                "name": "node",
                "instances": [{"status": "tainted", "attributes": {"id": "i-1"}}],
            }
        ],
    }
    before = read(json.dumps(pulled))
    assert read_plan([change("aws_instance.node", "replace", reason="tainted")], tmp_path, before).nodes_lost == lost
    # As where it was made in a zone that turned out to have no node: it may move.
    assert read_plan([change("aws_instance.node", "replace")], tmp_path, before).nodes_lost == lost
    group = change("aws_autoscaling_group.nodes[0]", "replace")
    assert read_plan([group], tmp_path, before).nodes_lost == ["aws_autoscaling_group.nodes[0]"]
    # A machine is known by its id: where the outputs give none, each may have been used.
    pulled["outputs"] = {"cluster_endpoints": {"value": {"a": {"private_ip": "10.0.0.1"}}}}
    before = read(json.dumps(pulled))
    assert read_plan([change("aws_instance.node", "replace")], tmp_path, before).nodes_lost == ["aws_instance.node"]


def test_a_group_of_machines_that_goes_or_shrinks_ends_them(tmp_path: Path) -> None:
    def shown(kind: str, before: int, after: int, *actions: str) -> dict[str, object]:
        sizes = {"before": {"desired_capacity": before}, "after": {"desired_capacity": after}}
        return {
            "address": f"{kind}.nodes[0]",
            "type": kind,
            "change": {"actions": list(actions or ["update"]), **sizes},
        }

    group = "aws_autoscaling_group"
    for action in ("delete", "replace"):
        assert read_plan([change(f"{group}.nodes[0]", action)], tmp_path, State((), {})).nodes_lost == [
            f"{group}.nodes[0]"
        ]
    assert read_plan([change(f"{group}.nodes[0]", "update")], tmp_path, State((), {})).nodes_lost == []
    changes = [shown(group, 3, 2), shown(group, 2, 3), shown(group, 3, 3), shown("aws_vpc", 3, 2)]
    assert ended_by_groups({"resource_changes": changes}) == [f"{group}.nodes[0] (3 nodes, then 2)"]
    assert ended_by_groups({"resource_changes": [shown(group, 3, 0, "delete")]}) == []  # counted where it is read
    assert ended_by_groups({}) == []
