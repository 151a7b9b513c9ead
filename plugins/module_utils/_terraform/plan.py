# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a plan of terraform would do, which of it costs running machines, and what terraform says is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Resources that are machines: to destroy or replace one ends what runs on it.
MACHINES = frozenset({"aws_instance", "azurerm_linux_virtual_machine", "google_compute_instance", "ibm_is_instance"})

#: Resources that make and end machines by themselves.
GROUPS = frozenset({"aws_autoscaling_group"})

#: What is lost for good where it is replaced: data, or the key to it.
IRREPLACEABLE = frozenset(
    {
        "aws_kms_key",
        "aws_s3_bucket",
        "azurerm_storage_account",
        "azurerm_storage_container",
        "google_storage_bucket",
        "ibm_resource_instance",
        "ibm_cos_bucket",
    }
)

#: Summary of the warning by which terraform tells that a check block failed.
_FAILED_CHECK = "Check block assertion failed"


@dataclass
class Plan:
    """Addresses of resources by what would be done to them."""

    create: list[str] = field(default_factory=list)
    update: list[str] = field(default_factory=list)
    replace: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    #: Outputs that would change.
    outputs: list[str] = field(default_factory=list)
    #: Running machines among what would be replaced or deleted.
    machines_lost: list[str] = field(default_factory=list)
    #: Keys and buckets among it.
    storage_lost: list[str] = field(default_factory=list)
    #: What the configuration's own checks say; they stop nothing.
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything would be done."""
        return bool(self.create or self.update or self.replace or self.delete or self.outputs)

    def as_dict(self) -> dict[str, list[str]]:
        """The addresses, for a module's answer."""
        return {
            "create": self.create,
            "update": self.update,
            "replace": self.replace,
            "delete": self.delete,
            "outputs": self.outputs,
        }

    def diff(self) -> dict[str, str]:
        """The plan as a diff of lists: what there is of it, and what there would be."""
        before = sorted([*self.update, *self.replace, *self.delete])
        after = sorted(
            [*self.create]
            + [f"{address} (changed)" for address in self.update]
            + [f"{address} (a new one in its place)" for address in self.replace]
            + [f"output {name} (changed)" for name in self.outputs]
        )
        return {"before": "".join(f"{line}\n" for line in before), "after": "".join(f"{line}\n" for line in after)}


def read_plan(shown: Mapping[str, Any]) -> Plan:
    """The plan out of what ``terraform show -json PLAN`` prints."""
    plan = Plan()
    told = _machines_told(shown)
    for change in shown.get("resource_changes", []):
        actions, address = change["change"]["actions"], change["address"]
        if change.get("mode") == "data" or actions in (["no-op"], ["read"]):
            continue
        if "create" in actions and "delete" in actions:
            plan.replace.append(address)
        elif actions == ["create"]:
            plan.create.append(address)
        elif actions == ["delete"]:
            plan.delete.append(address)
        else:
            plan.update.append(address)
            if change.get("type") in GROUPS and _ends_machines(change["change"]):
                plan.machines_lost.append(address)
        if "delete" not in actions:
            continue
        tainted = change.get("action_reason") == "replace_because_tainted"
        # Its making was cut off, and no inventory has ever named it: nothing runs on it.
        unused = tainted and str((change["change"].get("before") or {}).get("id")) not in told
        if change.get("type") in MACHINES | GROUPS and not unused:
            plan.machines_lost.append(address)
        # One that is only marked is unmarked before it is planned, but not in check mode.
        if change.get("type") in IRREPLACEABLE and not tainted:
            plan.storage_lost.append(address)
    changes = shown.get("output_changes") or {}
    plan.outputs = sorted(name for name, change in changes.items() if change["actions"] != ["no-op"])
    return plan


def _ends_machines(change: Mapping[str, Any]) -> bool:
    """Whether a group is to have fewer machines than it has."""
    before, after = ((change.get(each) or {}).get("desired_capacity") or 0 for each in ("before", "after"))
    return bool(after < before)


def _machines_told(shown: Mapping[str, Any]) -> set[str]:
    """Ids of the machines in the outputs from before the plan, which a job may have used."""
    outputs = ((shown.get("prior_state") or {}).get("values") or {}).get("outputs") or {}
    endpoints = (outputs.get("cluster_endpoints") or {}).get("value") or {}
    return {str(each["instance_id"]) for each in endpoints.values() if each.get("instance_id")}


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
    for line in said.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        diagnostic = event.get("diagnostic") if isinstance(event, dict) else None
        if diagnostic and diagnostic.get("severity") == severity:
            yield diagnostic.get("summary") or "", diagnostic.get("detail") or ""
