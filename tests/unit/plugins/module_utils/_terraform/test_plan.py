"""What a plan would do, and what terraform says is wrong, out of the shapes that it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.plan import (
    Plan,
    errors_of,
    failed_checks,
    read_plan,
)


def change(address: str, *actions: str, mode: str = "managed") -> dict[str, Any]:
    kind = address.removeprefix("module.cluster.").partition(".")[0]
    return {"address": address, "mode": mode, "type": kind, "change": {"actions": list(actions)}}


def test_every_kind_of_change() -> None:
    plan = read_plan(
        {
            "resource_changes": [
                change("aws_vpc.cluster", "no-op"),
                change("aws_subnet.nodes", "create"),
                change("aws_key_pair.cluster", "update"),
                change("aws_launch_template.node", "delete", "create"),
                change("aws_eip.nat", "delete"),
                change("data.aws_partition.current", "read", mode="data"),
            ],
            "output_changes": {"master_ip": {"actions": ["update"]}, "cluster": {"actions": ["no-op"]}},
        }
    )
    assert plan == Plan(
        create=["aws_subnet.nodes"],
        update=["aws_key_pair.cluster"],
        replace=["aws_launch_template.node"],
        delete=["aws_eip.nat"],
        outputs=["master_ip"],
    )
    assert plan.diff() == {
        "before": "aws_eip.nat\naws_key_pair.cluster\naws_launch_template.node\n",
        "after": "aws_key_pair.cluster (changed)\naws_launch_template.node (a new one in its place)\naws_subnet.nodes\n"
        "output master_ip (changed)\n",
    }


@pytest.mark.parametrize("actions", [("delete",), ("delete", "create"), ("create", "delete")])
@pytest.mark.parametrize(
    "kind", ["aws_instance", "azurerm_linux_virtual_machine", "google_compute_instance", "ibm_is_instance"]
)
def test_machines_that_would_be_lost(kind: str, actions: tuple[str, ...]) -> None:
    address = f'module.cluster.{kind}.node["big-01"]'
    assert read_plan({"resource_changes": [change(address, *actions)]}).machines_lost == [address]


@pytest.mark.parametrize(
    ("actions", "before", "after", "lost"),
    [
        (("update",), 3, 2, True),
        (("update",), 2, 3, False),
        (("update",), 3, 3, False),
        (("delete",), 3, None, True),
        (("create",), None, 3, False),
    ],
)
def test_a_group_that_goes_or_shrinks_ends_machines(
    actions: tuple[str, ...], before: int | None, after: int | None, lost: bool
) -> None:
    group = change("module.cluster.aws_autoscaling_group.nodes[0]", *actions)
    for name, nodes in (("before", before), ("after", after)):
        group["change"][name] = None if nodes is None else {"desired_capacity": nodes}
    assert read_plan({"resource_changes": [group]}).machines_lost == ([group["address"]] if lost else [])


@pytest.mark.parametrize(
    ("reason", "told", "lost"),
    [
        ("replace_because_tainted", None, False),
        ("replace_because_tainted", "i-2", False),
        ("replace_because_tainted", "i-1", True),
        ("replace_because_cannot_update", None, True),
        (None, None, True),
    ],
)
def test_a_half_made_machine_that_no_inventory_named_is_not_lost(reason: str, told: str, lost: bool) -> None:
    machine = change("module.cluster.aws_instance.monitor", "delete", "create")
    machine["action_reason"] = reason
    machine["change"]["before"] = {"id": "i-1"}
    endpoints = {"a": {"instance_id": told}} if told else {}
    shown = {
        "resource_changes": [machine],
        "prior_state": {"values": {"outputs": {"cluster_endpoints": {"value": endpoints}}}},
    }
    assert read_plan(shown).machines_lost == (["module.cluster.aws_instance.monitor"] if lost else [])


def test_keys_and_buckets_that_would_be_lost() -> None:
    changes = [change("aws_kms_key.cluster", "delete", "create"), change("aws_s3_bucket.checkpoints", "delete")]
    assert read_plan({"resource_changes": changes}).storage_lost == ["aws_kms_key.cluster", "aws_s3_bucket.checkpoints"]
    for each in changes:  # only marked: unmarked before the real run plans
        each["action_reason"] = "replace_because_tainted"
    assert read_plan({"resource_changes": changes}).storage_lost == []


def test_a_machine_that_is_made_or_changed_is_not_lost() -> None:
    changes = [change("aws_instance.node", "create"), change("aws_instance.monitor", "update")]
    assert read_plan({"resource_changes": changes}).machines_lost == []


def test_an_empty_plan() -> None:
    assert not read_plan({"resource_changes": [change("aws_vpc.cluster", "no-op")]}).changed
    assert read_plan({"output_changes": {"master_ip": {"actions": ["create"]}}}).changed


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
