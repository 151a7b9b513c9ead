# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Jobs beside each other on one node: the ports that each listens on, and a clash reported before the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .config_file import merged
from .files import JobError
from .launch_command import NodeShare
from .node import JobNode
from .spec import JobSpec

#: The trainer's default for metrics.port.
METRICS_PORT = 9410
METRICS, RENDEZVOUS = "metrics", "rendezvous"
SETTINGS = {
    METRICS: "give one of them another metrics.port in its configuration (0 is any free one)",
    RENDEZVOUS: "give one of them another rdzv_port",
}


def ports(specification: Mapping[str, Any], share: Mapping[str, Any]) -> dict[int, str]:
    """What a job listens on at known ports of this node, and for what.

    ``share`` has what differs from node to node: ``config``, and ``is_head``, which is None where it is not known.
    """
    found = {}
    config = merged(specification.get("config") or {}, share.get("config") or {})
    metrics = config.get("metrics") or {}
    if not specification.get("command") and metrics.get("enabled", True):
        found[_number(metrics.get("port", METRICS_PORT))] = METRICS
    if share.get("is_head") is not False:
        found[_number(specification.get("rdzv_port"))] = RENDEZVOUS
    found.pop(0, None)
    return found


def _number(port: Any) -> int:
    """0 for a port that is chosen when the job starts, and for what is none, which the trainer refuses."""
    return int(port) if str(port).isdecimal() else 0


def clash(own: Mapping[int, str], name: str, theirs: Mapping[int, str]) -> Optional[str]:
    """Why a job with the ports ``own`` cannot run beside the job ``name``; None if it can."""
    for port in sorted(own.keys() & theirs.keys()):
        return (
            f"Port {port} of this node is taken by job {name}, which runs ({theirs[port]}), and needed for this job's "
            f"{own[port]}: {SETTINGS[own[port]]}, or stop job {name} first."
        )
    return None


def as_recorded(share: NodeShare) -> dict[str, Any]:
    """What the record of a job keeps of a node's share, for those that come after it."""
    config = share.config or {}
    return {"config": {"metrics": config["metrics"]} if "metrics" in config else {}, "is_head": share.is_head}


def refuse_clash(node: JobNode, spec: JobSpec, share: NodeShare) -> None:
    """Raise JobError if another job that runs on this node listens where this one would."""
    own = ports(spec.as_dict(), {"config": share.config, "is_head": share.is_head})
    for name in node.names():
        if name == spec.name:
            continue
        record = node.control(name).record()
        if "specification" not in record:
            continue
        reason = clash(own, name, ports(record["specification"], record.get("share") or {}))
        # systemd is asked about those only that would be in the way.
        if reason is not None and node.may_run(name):
            raise JobError(reason)
