# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which resources of a state hold checkpoints, and which ones an interrupted apply left incomplete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

from .plan import IRREPLACEABLE, MACHINES
from .state import managed

#: Where checkpoints lie, and what keeps them readable and closed to others.
STORAGE = IRREPLACEABLE | {
    "aws_kms_alias",
    "aws_s3_bucket_public_access_block",
    "aws_s3_bucket_versioning",
    "aws_s3_bucket_server_side_encryption_configuration",
    "aws_s3_bucket_lifecycle_configuration",
    "aws_s3_bucket_policy",
    "aws_s3_bucket_logging",
    "azurerm_storage_management_policy",
}
#: Ends of the addresses of what stops the storage from being destroyed, where the cloud has nothing that does.
GUARD = "terraform_data.checkpoints"
BUCKETS = frozenset({"aws_s3_bucket", "azurerm_storage_account", "google_storage_bucket", "ibm_cos_bucket"})
#: Of AWS, what is made anew when its making was cut off: machines, and what cannot be completed afterwards.
ANEW = MACHINES | {"aws_security_group", "aws_nat_gateway"}


def block_of(address: str) -> str:
    """The address without an index: what one block of the configuration made."""
    return address.partition("[")[0] if address.endswith("]") else address


def to_be_kept_as_they_are(state: Mapping[str, Any]) -> list[str]:
    """What is tainted and must not, or need not, be replaced: the next plan asks the cloud for it as it is."""
    return [
        address
        for kind, address, instance in managed(state)
        if instance.get("status") == "tainted"
        and (kind in IRREPLACEABLE or (kind.startswith("aws_") and kind not in ANEW))
    ]


def storage(state: Mapping[str, Any]) -> set[str]:
    """Addresses of the checkpoints' storage, and of all that it needs to stay."""
    return with_needs(
        state,
        {
            address
            for kind, address, _instance in managed(state)
            # A log's bucket is of the same type; it goes with what it is the log of.
            if (kind in STORAGE and not _is_of_a_log(address)) or address.endswith(GUARD)
        },
    )


def with_needs(state: Mapping[str, Any], addresses: set[str]) -> set[str]:
    """These addresses, and those of all that they were made with."""
    needs: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    todo = []
    for _kind, address, instance in managed(state):
        needs.setdefault(block_of(address), []).append((address, instance))
        if address in addresses:
            todo.append((address, instance))
    found: set[str] = set()
    while todo:
        address, instance = todo.pop()
        if address not in found:
            found.add(address)
            todo.extend(each for block in instance.get("dependencies") or () for each in needs.get(block, []))
    return found


def _is_of_a_log(address: str) -> bool:
    return block_of(address).rpartition(".")[2] == "flow"


def marks(state: Mapping[str, Any], address: str) -> list[str]:
    """What has to be changed in the state before the bucket at an address may be deleted with what is in it."""
    return [address, *(each for _kind, each, _instance in managed(state) if each.endswith(GUARD))]


def bucket(state: Mapping[str, Any]) -> Optional[tuple[str, str, Mapping[str, Any]]]:
    """(type, address, attributes) of what the checkpoints lie in; None where there is nothing."""
    return _bucket(state, storage(state).__contains__)


def logs(state: Mapping[str, Any]) -> Optional[tuple[str, str, Mapping[str, Any]]]:
    """The same of what the flow logs lie in, where that is a bucket, as on IBM Cloud."""
    return _bucket(state, _is_of_a_log)


def _bucket(state: Mapping[str, Any], is_meant: Callable[[str], bool]) -> Optional[tuple[str, str, Mapping[str, Any]]]:
    for kind, address, instance in managed(state):
        if kind in BUCKETS and is_meant(address):
            return kind, address, instance.get("attributes") or {}
    return None
