"""What `terraform plan` says would change, and which running nodes and stores would go with it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_deploy import state

FAILED_CHECK = "Check block assertion failed"


@dataclass
class Plan:
    """What would change."""

    path: Path
    create: list[str] = field(default_factory=list)
    update: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    replace: list[str] = field(default_factory=list)
    adopt: list[str] = field(default_factory=list)
    """What exists and is only written down."""
    outputs_change: bool = False
    nodes_lost: list[str] = field(default_factory=list)
    """Running nodes that would be destroyed or replaced."""
    storage_lost: list[str] = field(default_factory=list)
    """Keys and buckets that would be."""
    warnings: list[str] = field(default_factory=list)
    """What the configuration's own checks say; they stop nothing."""

    def discard(self) -> None:
        """Remove it: it holds the variables."""
        shutil.rmtree(self.path.parent, ignore_errors=True)

    @property
    def empty(self) -> bool:
        """Is all as it should be?"""
        return not (self.create or self.update or self.delete or self.replace or self.adopt or self.outputs_change)

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        verbs = {each: getattr(self, each) for each in ("create", "update", "replace", "delete", "adopt")}
        return {"changes": verbs, **{each: getattr(self, each) for each in ("nodes_lost", "storage_lost", "warnings")}}

    @property
    def changes(self) -> int:
        """Resources that change; one that is replaced counts twice, as terraform reports it twice."""
        return len(self.create) + len(self.update) + len(self.delete) + 2 * len(self.replace)


def read_plan(events: Sequence[Mapping[str, Any]], path: Path, before: state.State) -> Plan:
    """The plan out of what `terraform plan -json` prints; `before` knows what is tainted."""
    plan = Plan(path)
    lists = {"create": plan.create, "update": plan.update, "delete": plan.delete, "replace": plan.replace}
    for event in events:
        if event.get("type") == "outputs":
            plan.outputs_change = any(each.get("action", "noop") != "noop" for each in event["outputs"].values())
        diagnostic = event.get("diagnostic") or {}
        if diagnostic.get("severity") == "warning" and diagnostic.get("summary") == FAILED_CHECK:
            plan.warnings.append(" ".join(diagnostic.get("detail", "").split()))
    # Terraform tells them in any order.
    changes = [event["change"] for event in events if event.get("type") == "planned_change"]
    for change in sorted(changes, key=lambda each: str(each["resource"]["addr"])):
        action, address, kind = change["action"], change["resource"]["addr"], change["resource"]["resource_type"]
        if change.get("importing"):
            plan.adopt.append(address)
        if action in lists:
            lists[action].append(address)
        if action not in ("delete", "replace"):
            continue
        if kind in state.IRREPLACEABLE:
            plan.storage_lost.append(address)
        unfinished_group = kind in state.GROUPS and change.get("reason") == "tainted"
        if kind in state.GROUPS and not unfinished_group:
            plan.nodes_lost.append(address)
        if kind in state.INSTANCES and not _never_used(address, before):
            plan.nodes_lost.append(address)
    return plan


def ended_by_groups(shown: Mapping[str, Any]) -> list[str]:
    """Groups that a plan, as `terraform show -json` tells it, leaves fewer machines; each with both numbers."""
    found = []
    for resource in shown.get("resource_changes", []):
        change = resource["change"]
        if resource["type"] not in state.GROUPS or change["actions"] != ["update"]:
            continue
        before, after = (change[each].get("desired_capacity") or 0 for each in ("before", "after"))
        if after < before:
            found.append(f"{resource['address']} ({before} nodes, then {after})")
    return found


def _never_used(address: str, before: state.State) -> bool:
    """Whether no inventory has ever named a machine, so that nothing runs on it: its making was cut off or failed."""
    machine, told = before.named(address), before.machines_told()
    return machine is not None and bool(machine.id) and told is not None and machine.id not in told
