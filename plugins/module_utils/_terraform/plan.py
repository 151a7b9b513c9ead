# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a plan of terraform would do, which of it costs running machines, and what terraform says is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .state import GROUPS, IRREPLACEABLE, MACHINES, State

#: Summary of the warning by which terraform tells that a check block failed.
_FAILED_CHECK = "Check block assertion failed"


@dataclass
class Plan:
    """Addresses of resources by what would be done to them."""

    create: list[str] = field(default_factory=list)
    update: list[str] = field(default_factory=list)
    replace: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    #: What exists and is only written down.
    adopt: list[str] = field(default_factory=list)
    #: Outputs that would change.
    outputs: list[str] = field(default_factory=list)
    #: Running machines that would be replaced or deleted; groups of machines that would have fewer, with both numbers.
    machines_lost: list[str] = field(default_factory=list)
    #: Keys and buckets that would be.
    storage_lost: list[str] = field(default_factory=list)
    #: What the configuration's own checks say; they stop nothing.
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything would be done."""
        return any(self.changes().values()) or bool(self.outputs)

    def changes(self) -> dict[str, list[str]]:
        """The addresses by what would be done."""
        return {kind: getattr(self, kind) for kind in ("create", "update", "replace", "delete", "adopt")}

    def diff(self) -> dict[str, str]:
        """The plan as a diff of lists: what there is of it, and what there would be."""
        before = sorted([*self.update, *self.replace, *self.delete])
        after = sorted(
            [*self.create]
            + [f"{address} (changed)" for address in self.update]
            + [f"{address} (a new one in its place)" for address in self.replace]
            + [f"{address} (there already, taken over)" for address in self.adopt]
            + [f"output {name} (changed)" for name in self.outputs]
        )
        return {"before": "".join(f"{line}\n" for line in before), "after": "".join(f"{line}\n" for line in after)}


def read_plan(said: str, state: Callable[[], State], show: Callable[[], Mapping[str, Any]]) -> Plan:
    """The plan out of what ``terraform plan -json`` prints.

    What that does not say is asked for where it matters, as each answer starts Terraform again: by ``state``, which
    machines the outputs have named so far, and by ``show`` (``terraform show -json PLAN``), how large a group is to be.
    """
    plan = Plan(warnings=failed_checks(said))
    events = list(_events(said))
    outputs = {name: about for event in events for name, about in (event.get("outputs") or {}).items()}
    plan.outputs = sorted(name for name, about in outputs.items() if about.get("action", "noop") != "noop")
    changes = [event["change"] for event in events if event.get("type") == "planned_change"]
    ended = [each for each in changes if each["action"] in ("delete", "replace")]
    before = state() if any(each["resource"]["resource_type"] in MACHINES for each in ended) else State()
    # Terraform tells them in any order.
    for change in sorted(changes, key=lambda each: str(each["resource"]["addr"])):
        action, address, kind = change["action"], change["resource"]["addr"], change["resource"]["resource_type"]
        if change.get("importing"):
            plan.adopt.append(address)
        if action in ("create", "update", "replace", "delete"):
            getattr(plan, action).append(address)
        if action not in ("delete", "replace"):
            continue
        if kind in IRREPLACEABLE:
            plan.storage_lost.append(address)
        unfinished_group = kind in GROUPS and change.get("reason") == "tainted"
        if kind in GROUPS and not unfinished_group:
            plan.machines_lost.append(address)
        if kind in MACHINES and not _never_used(address, before, outputs):
            plan.machines_lost.append(address)
    if any(each["action"] == "update" and each["resource"]["resource_type"] in GROUPS for each in changes):
        plan.machines_lost += _ended_by_groups(show())
    return plan


def _ended_by_groups(shown: Mapping[str, Any]) -> Iterator[str]:
    """Groups that a plan leaves fewer machines; each with both numbers."""
    for resource in shown.get("resource_changes", []):
        change = resource["change"]
        if resource["type"] in GROUPS and change["actions"] == ["update"]:
            before, after = (change[each].get("desired_capacity") or 0 for each in ("before", "after"))
            if after < before:
                yield f"{resource['address']} ({before} nodes, then {after})"


def _never_used(address: str, before: State, outputs: Iterable[str]) -> bool:
    """Whether no inventory has ever named a machine, so that nothing runs on it: its making was cut off or failed."""
    if "cluster_endpoints" not in {*outputs, *before.outputs}:
        return False  # Whoever uses this root module knows its machines in another way.
    machine, told = before.named(address), before.machines_told()
    return machine is not None and bool(machine.id) and told is not None and machine.id not in told


def errors_of(said: str) -> list[str]:
    """Each error in what terraform printed with ``-json``, in its own words, once."""
    found = []
    for summary, detail in _diagnostics(said, "error"):
        # A variable's own check says all there is to say; its summary and its place add nothing.
        body = detail.partition("\n\nThis was checked by the validation rule")[0]
        text = body if summary == "Invalid value for variable" and body else f"{summary}: {body}" if body else summary
        found.append(" ".join(text.split()))
    return list(dict.fromkeys(found))


def failed_checks(said: str) -> list[str]:
    """What the check blocks that failed say in what terraform printed with ``-json``, once."""
    found = [detail for summary, detail in _diagnostics(said, "warning") if summary == _FAILED_CHECK]
    return list(dict.fromkeys(" ".join(detail.split()) for detail in found))


def _diagnostics(said: str, severity: str) -> Iterator[tuple[str, str]]:
    """Summary and detail of each diagnostic of a severity."""
    for event in _events(said):
        diagnostic = event.get("diagnostic")
        if diagnostic and diagnostic.get("severity") == severity:
            yield diagnostic.get("summary") or "", diagnostic.get("detail") or ""


def _events(said: str) -> Iterator[dict[str, Any]]:
    """What terraform printed with ``-json``, line by line."""
    for line in said.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
