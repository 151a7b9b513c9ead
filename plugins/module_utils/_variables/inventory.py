# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Why a playbook would do nothing with an inventory, and still end as if all were well."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .._printable import printable

#: Where Ansible looks when no inventory is given; nobody is to blame where it is not there.
DEFAULT_SOURCE = "/etc/ansible/hosts"
EXAMPLE = "as in 'ansible-playbook -i mine gaudi3.scale.site'"


@dataclass(frozen=True)
class Inventory:
    """What Ansible knows of hosts before the first play."""

    groups: Mapping[str, Sequence[str]]
    sources: Sequence[str] = ()
    """As given with ``-i`` or in the settings: paths, or names of hosts with a comma."""
    unread: Sequence[str] = ()
    """Files of the sources that no inventory plugin read."""
    limit: str = ""
    """The value of ``--limit``."""
    left: Sequence[str] = field(default_factory=tuple)
    """Hosts that the run is about, after ``--limit``."""


def inventory_problem(inventory: Inventory, wanted: Sequence[str]) -> str:
    """Why a playbook for hosts of the groups ``wanted`` does nothing, in one sentence; else empty."""
    if inventory.unread:
        return _unread(inventory.unread[0])
    if not inventory.groups.get("gaudi"):
        return _no_nodes(inventory.sources)
    if not any(inventory.groups.get(group) for group in wanted):
        return (
            f"The inventory has no host in group {' or '.join(wanted)}, on which this playbook works: name the hosts "
            "of that group in it."
        )
    meant = {name for group in wanted for name in inventory.groups.get(group, ())}
    if inventory.limit and not meant.intersection(inventory.left):
        groups = " and ".join(wanted)
        return (
            f"--limit {printable(inventory.limit, 200)} leaves none of the hosts that this playbook works on: name "
            f"hosts of {'group' if len(wanted) == 1 else 'the groups'} {groups}, or leave --limit out."
        )
    return ""


def _unread(source: str) -> str:
    shown = printable(source, 200)
    if not os.path.exists(source):
        return f"The inventory {shown} does not exist: give a file or folder that does with -i, {EXAMPLE}."
    return (
        f"The inventory {shown} was not read, for the reason that Ansible warns of above: correct the file, or move it "
        "out of the inventory."
    )


def _no_nodes(sources: Sequence[str]) -> str:
    shown = printable(", ".join(sources) or "none", 200)
    begin = f"The inventory has no host in group gaudi (Ansible read {shown}): "
    if any(os.path.normpath(each).endswith(os.path.join("inventories", "simulated")) for each in sources):
        return begin + "bring simulated nodes up with 'make up', or give the inventory of your own nodes with -i."
    return begin + f"give yours with -i, {EXAMPLE}, and name the Gaudi nodes in that group."
