# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The teams as queues of Kueue, kueue.x-k8s.io/v1beta2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from .declared import TeamEntry

API = "kueue.x-k8s.io/v1beta2"
CARDS = "habana.ai/gaudi"
"""What the vendor's device plugin calls a card."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_RESOURCE = re.compile(rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_LABEL}")
_QUANTITY = re.compile(r"[0-9]{1,9}(?:m|k|M|G|T|Ki|Mi|Gi|Ti)?")


def manifests(
    wanted: Sequence[TeamEntry],
    resource: str = CARDS,
    others: Optional[Mapping[str, str]] = None,
    labels: Optional[Mapping[str, str]] = None,
    flavor: str = "gaudi3",
) -> list[dict[str, Any]]:
    """One ResourceFlavor, and a ClusterQueue and a LocalQueue for each team.

    Args:
        wanted: The teams. Each needs a quota of cards, as a ClusterQueue has no queue without an amount.
        resource: What a card is called: a device plugin's resource, or the name that deviceClassMappings gives.
        others: Amounts of further resources, the same for each team. A queue has to cover all that its pods ask for.
        labels: Labels of the nodes that have the cards.
        flavor: Name of the ResourceFlavor.

    Raises:
        Refusal: A team has no number of cards, or a name or amount is none of Kubernetes'.
    """
    if not _NAME.fullmatch(flavor):
        raise Refusal(f"The flavor {_said(flavor)} is not a name: take lower-case letters, digits and '-'")
    if resource in (others or {}):
        raise Refusal(
            f"The resource {printable(resource, 80)} is the cards', whose amount is each team's quota: leave it out of "
            "--other"
        )
    amounts = {resource: "0", **(others or {})}
    for name, amount in amounts.items():
        if not _RESOURCE.fullmatch(name):
            raise Refusal(f"The resource {_said(name)} is none of Kubernetes': give one as {CARDS} or memory")
        if not _QUANTITY.fullmatch(amount):
            raise Refusal(f"The amount {_said(amount)} of {name} is none of Kubernetes': give one as 128 or 800Gi")
    for name, label in (labels or {}).items():
        if not _RESOURCE.fullmatch(name) or not re.fullmatch(_LABEL, label):
            raise Refusal(f"The label {_said(f'{name}={label}')} is none of a node: give one as gaudi=gaudi3")
    found: list[dict[str, Any]] = [
        {
            "apiVersion": API,
            "kind": "ResourceFlavor",
            "metadata": {"name": flavor},
            "spec": {"nodeLabels": dict(labels)} if labels else {},
        }
    ]
    for entry in wanted:
        if entry.quota.cards is None:
            raise Refusal(f"Team {entry.name} has no quota of cards, which Kueue needs: give quota: {{cards: ...}}")
        quotas = {**amounts, resource: str(entry.quota.cards)}
        found += [_cluster_queue(entry, flavor, quotas), _local_queue(entry)]
    return found


def notes(wanted: Sequence[TeamEntry]) -> list[str]:
    """What Kueue does not know of a team's quota."""
    found = []
    for entry in wanted:
        left = [key for key in ("jobs", "card_hours") if getattr(entry.quota, key) is not None]
        left += ["priority"] if entry.priority else []
        left += [key for key in ("nodes", "partition") if getattr(entry, key)]
        if left:
            found.append(f"Team {entry.name}: a queue of Kueue has no {' and no '.join(left)}; the file's is left out.")
    return found


def _cluster_queue(entry: TeamEntry, flavor: str, quotas: Mapping[str, str]) -> dict[str, Any]:
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    return {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": f"team-{entry.name}"},
        "spec": {
            # From this team's namespace alone: a queue of another namespace that points here is refused.
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": entry.namespace}},
            "resourceGroups": [
                {"coveredResources": list(quotas), "flavors": [{"name": flavor, "resources": resources}]},
            ],
        },
    }


def _local_queue(entry: TeamEntry) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": "gaudi", "namespace": entry.namespace},
        "spec": {"clusterQueue": f"team-{entry.name}"},
    }


def _said(value: str) -> str:
    return printable(repr(value), 80)
