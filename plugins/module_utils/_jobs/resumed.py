# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Jobs that ended with a node which is back, and go on where their other nodes start them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._kinds import ENTRIES, mapping
from .rules import NAME


def ended_jobs(answers: Mapping[str, object]) -> dict[str, list[str]]:
    """By the name of each job the nodes that say it ended with them; what is no name of a job is left out."""
    found: dict[str, list[str]] = {}
    for node, names in sorted(answers.items()):
        for name in names[:ENTRIES] if isinstance(names, (list, tuple)) else ():
            if isinstance(name, str) and NAME.fullmatch(name) and node not in found.setdefault(name, []):
                found[name].append(node)
    return found


def may_be_resumed(record: Mapping[str, Any], ended_on: object) -> bool:
    """Whether one of the nodes on which a job ended is a node of it, by what this node has on record of the job.

    A node may say of any job that it ended there. The record was written by the controller that started the job.
    """
    nodes = mapping(record.get("specification")).get("nodes")
    if not isinstance(nodes, list) or not isinstance(ended_on, list):
        return False
    return any(isinstance(node, str) and node in nodes for node in ended_on)
