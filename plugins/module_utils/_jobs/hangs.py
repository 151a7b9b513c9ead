# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Hangs that jobs of this node ended with: what ``status.json`` of each says, and which nodes the job has.

The sentence is its user's word, and may name any node. Which nodes a job has is root's record.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass
from typing import Any, Optional

from .files import Control
from .rules import NAME
from .status import Status

#: Older hangs say nothing of a node any more, in seconds.
LASTS = 7 * 86400
#: Hangs of a node, the newest.
MOST = 16
#: Jobs that are looked at: a node has few, and each of them costs two files.
MOST_JOBS = 1000


@dataclass(frozen=True)
class JobHang:
    """What a job said of the hang that it ended with last.

    ``nodes`` are those that it names, as they call themselves, and ``members`` the job's nodes, as the inventory has
    them. ``at`` is when it was found, in seconds since 1970.
    """

    job: str
    state: str
    sentence: str
    kind: str
    certain: bool
    nodes: tuple[str, ...]
    at: float
    members: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "nodes": list(self.nodes), "members": list(self.members)}


def found_in(jobs_dir: str, now: float) -> list[JobHang]:
    """The hangs of the jobs below a folder, the newest first; a time in the future is taken as now."""
    found = [hang for name in _names(jobs_dir) if (hang := _hang_of(jobs_dir, name, now)) is not None]
    return sorted(found, key=lambda each: (-each.at, each.job))[:MOST]


def _names(jobs_dir: str) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(jobs_dir) if NAME.fullmatch(name))[:MOST_JOBS]
    return []


def _hang_of(jobs_dir: str, name: str, now: float) -> Optional[JobHang]:
    folder = os.path.join(jobs_dir, name)
    status = Status.in_folder(folder)
    said = status.values.get("hang") if status is not None else None
    if status is None or not said or not said["sentence"]:
        return None
    at = min(now, said.get("at") or status.updated_at)
    if now - at > LASTS:
        return None
    members = (Control(folder).record().get("specification") or {}).get("nodes") or ()
    return JobHang(
        name, status.state, said["sentence"], said["kind"], said["certain"], tuple(said["nodes"]), at, tuple(members)
    )
