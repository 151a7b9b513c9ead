"""What a plan would do, and what terraform says is wrong, out of the events that it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.plan import (
    Plan,
    errors_of,
    failed_checks,
    read_plan,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import Resource, State

#: What a root module of the collection says of its outputs, whatever else changes.
TOLD = {"type": "outputs", "outputs": {"cluster_endpoints": {"action": "noop"}}}
MACHINES = ("aws_instance", "azurerm_linux_virtual_machine", "google_compute_instance", "ibm_is_instance")
GROUP = "module.cluster.aws_autoscaling_group.nodes[0]"


def change(address: str, action: str, **more: object) -> dict[str, Any]:
    """An event of ``terraform plan -json``."""
    kind = address.removeprefix("module.cluster.").partition(".")[0]
    resource = {"addr": address, "resource_type": kind}
    return {"type": "planned_change", "change": {"resource": resource, "action": action, **more}}


def never() -> NoReturn:
    """Terraform is not to be started once more for this."""
    raise AssertionError("asked")


def read(*events: dict[str, Any], before: State | None = None, shown: Mapping[str, Any] | None = None) -> Plan:
    """The plan; ``before`` and ``shown`` where they are to be asked for."""
    said = "\n".join(["Terraform v1", *(json.dumps(each) for each in events)])
    state, show = (never if each is None else lambda each=each: each for each in (before, shown))
    return read_plan(said, state, show)


def test_every_kind_of_change() -> None:
    plan = read(
        change("aws_vpc.cluster", "noop"),
        change("aws_subnet.nodes", "create"),
        change("aws_route.out", "update", importing={"id": "r-1"}),
        change("aws_key_pair.cluster", "update"),
        change("aws_launch_template.node", "replace"),
        change("aws_eip.nat", "delete"),
        change("aws_eip.entry", "import", importing={"id": "eipalloc-1"}),
        change("data.aws_partition.current", "read"),
        change("aws_flow_log.cluster", "move"),
        {"type": "change_summary", "changes": {"add": 1}},
        {"type": "outputs", "outputs": {"master_ip": {"action": "update"}, "cluster": {"action": "noop"}}},
    )
    assert plan == Plan(
        create=["aws_subnet.nodes"],
        update=["aws_key_pair.cluster", "aws_route.out"],
        replace=["aws_launch_template.node"],
        delete=["aws_eip.nat"],
        adopt=["aws_eip.entry", "aws_route.out"],
        outputs=["master_ip"],
    )
    assert plan.diff() == {
        "before": "aws_eip.nat\naws_key_pair.cluster\naws_launch_template.node\naws_route.out\n",
        "after": "aws_eip.entry (there already, taken over)\naws_key_pair.cluster (changed)\n"
        "aws_launch_template.node (a new one in its place)\naws_route.out (changed)\n"
        "aws_route.out (there already, taken over)\naws_subnet.nodes\noutput master_ip (changed)\n",
    }


@pytest.mark.parametrize("action", ["delete", "replace"])
@pytest.mark.parametrize("kind", MACHINES)
def test_machines_that_would_be_lost(kind: str, action: str) -> None:
    address = f'module.cluster.{kind}.node["big-01"]'
    assert read(change(address, action), before=State()).machines_lost == [address]


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        ({}, False),
        ({"big-01": {"instance_id": "i-1"}}, True),
        ({"big-01": {"instance_id": "i-2"}}, False),
        # Where the outputs give no ids, each may have been used.
        ({"big-01": {"private_ip": "10.0.0.1"}}, True),
    ],
    ids=["no outputs yet", "told", "another", "no ids"],
)
@pytest.mark.parametrize("reason", [{}, {"reason": "tainted"}], ids=["changed", "cut off"])
def test_a_machine_that_no_inventory_has_named_is_no_running_one(
    told: dict[str, Any], lost: bool, reason: dict[str, str]
) -> None:
    address = 'module.cluster.aws_instance.node["big-01"]'
    machine = Resource(address, "aws_instance", True, {"id": "i-1"})
    before = State((machine,), {"cluster_endpoints": told} if told else {})
    assert bool(read(TOLD, change(address, "replace", **reason), before=before).machines_lost) is lost
    # One that is not in the state is not known to be unused, nor is any in a root module without that output.
    assert read(TOLD, change(address, "replace", **reason), before=State()).machines_lost == [address]
    other = State((machine,), {"head": "10.0.0.1"})
    assert read(change(address, "replace", **reason), before=other).machines_lost == [address]


@pytest.mark.parametrize(
    ("action", "before", "after", "lost"),
    [
        ("update", 3, 2, [f"{GROUP} (3 nodes, then 2)"]),
        ("update", 2, 3, []),
        ("update", 3, 3, []),
        ("delete", 3, None, [GROUP]),
        ("replace", 3, 3, [GROUP]),
        ("create", None, 3, []),
    ],
)
def test_a_group_that_goes_or_shrinks_ends_machines(
    action: str, before: int | None, after: int | None, lost: list[str]
) -> None:
    sizes = {
        name: None if nodes is None else {"desired_capacity": nodes}
        for name, nodes in (("before", before), ("after", after))
    }
    actions = {"replace": ["delete", "create"]}.get(action, [action])
    other = {"address": "aws_vpc.cluster", "type": "aws_vpc", "change": {"actions": ["update"]}}
    group = {"address": GROUP, "type": "aws_autoscaling_group", "change": {"actions": actions, **sizes}}
    shown = {"resource_changes": [other, group]} if action == "update" else None
    assert read(change(GROUP, action), shown=shown).machines_lost == lost
    assert read(change(GROUP, "replace", reason="tainted")).machines_lost == []


def test_keys_and_buckets_that_would_be_lost() -> None:
    changes = [change("aws_kms_key.cluster", "replace"), change("aws_s3_bucket.checkpoints", "delete")]
    kept = [change("aws_s3_bucket_policy.checkpoints", "replace"), change("aws_kms_key.other", "update")]
    assert read(*changes, *kept).storage_lost == ["aws_kms_key.cluster", "aws_s3_bucket.checkpoints"]


def test_a_machine_that_is_made_or_changed_is_not_lost() -> None:
    assert read(change("aws_instance.node", "create"), change("aws_instance.monitor", "update")).machines_lost == []


def test_an_empty_plan() -> None:
    assert not read(change("aws_vpc.cluster", "noop"), TOLD).changed
    assert read({"type": "outputs", "outputs": {"master_ip": {"action": "create"}}}).changed
    assert read(change("aws_eip.e", "import", importing={"id": "eipalloc-1"})).changed


def diagnostic(severity: str, summary: str, detail: str = "") -> str:
    return json.dumps(
        {"type": "diagnostic", "diagnostic": {"severity": severity, "summary": summary, "detail": detail}}
    )


def test_errors_in_their_own_words() -> None:
    said = "\n".join(
        [
            "no JSON",
            "7",
            diagnostic("warning", "Deprecated"),
            diagnostic(
                "error",
                "Invalid value for variable",
                "cluster_size is 12: give a multiple\nof 8.\n\nThis was checked by the validation rule at main.tf:3.",
            ),
            diagnostic("error", "creating EC2 Instance", "InsufficientInstanceCapacity"),
            diagnostic("error", "creating EC2 Instance", "InsufficientInstanceCapacity"),
            diagnostic("error", "No credentials"),
        ]
    )
    assert errors_of(said) == [
        "cluster_size is 12: give a multiple of 8.",
        "creating EC2 Instance: InsufficientInstanceCapacity",
        "No credentials",
    ]


def test_checks_that_failed_are_sentences_and_other_warnings_are_not() -> None:
    said = "\n".join(
        [
            "no JSON",
            diagnostic("warning", "Check block assertion failed", "Nobody reaches\nthe nodes."),
            diagnostic("warning", "Check block assertion failed", "Nobody reaches the nodes."),
            diagnostic("warning", "Argument is deprecated", "Use another."),
            diagnostic("error", "No credentials"),
        ]
    )
    assert failed_checks(said) == ["Nobody reaches the nodes."]
