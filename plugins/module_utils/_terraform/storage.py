# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The buckets of a state, and what an interrupted apply left marked that is kept as it is."""

from __future__ import annotations

from typing import Optional

from .state import GUARD, IRREPLACEABLE, MACHINES, Resource, State

BUCKETS = frozenset({"aws_s3_bucket", "azurerm_storage_account", "google_storage_bucket", "ibm_cos_bucket"})
#: Of AWS, what is made anew when its making was cut off: machines, and what cannot be completed afterwards.
ANEW = MACHINES | {"aws_security_group", "aws_nat_gateway"}
#: Of other clouds, what may not be made anew, or changes what others know when it is.
KEPT_ELSEWHERE = IRREPLACEABLE | {
    "azurerm_public_ip",
    "azurerm_resource_group",
    "google_compute_address",
    "ibm_is_floating_ip",
    "ibm_is_public_gateway",
    "ibm_is_virtual_endpoint_gateway",
}


def stays_when_tainted(resource: Resource) -> bool:
    """Whether a thing whose making was cut off is left as it is: the next plan asks the cloud for what it lacks."""
    if resource.type.startswith("aws_"):
        return resource.type not in ANEW
    return resource.type in KEPT_ELSEWHERE


def marks(state: State, found: Resource) -> list[str]:
    """What has to be changed in the state before a bucket may be deleted with what is in it."""
    guard = state.named(GUARD)
    return [found.address, *([guard.address] if guard else [])]


def is_marked(found: Resource) -> bool:
    """Whether Terraform deletes a bucket with what is in it, as its state says so already."""
    return bool(found.attributes.get("force_destroy") or found.attributes.get("force_delete"))


def bucket(state: State) -> Optional[Resource]:
    """What the checkpoints lie in."""
    return next((each for each in state.of(BUCKETS) if not each.is_of_a_log), None)


def logs(state: State) -> Optional[Resource]:
    """What the flow logs lie in, where that is a bucket, as on IBM Cloud."""
    return next((each for each in state.of(BUCKETS) if each.is_of_a_log), None)
