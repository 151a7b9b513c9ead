# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Does a service run with what lies on disk? Judged from the times of its unit and of the files that it reads.

An earlier run may have written a file and ended before the restart, and a package may have replaced a program without
one. Neither shows as a change of this run, but the file is then younger than the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "ActiveEnterTimestampMonotonic",
    "StateChangeTimestampMonotonic",
)
RUNNING = ("active", "reloading", "activating")


@dataclass(frozen=True)
class Service:
    """A unit as systemd shows it; times in seconds since the epoch."""

    exists: bool
    running: bool
    enabled: bool
    stale_unit: bool
    """Its file changed after systemd read it."""
    started: float
    changed: float
    """Its last change of state, which a reload is too."""
    active: bool = False
    failed: bool = False


def parse_show(text: str, clock_offset: float) -> Service:
    """Read what ``systemctl show`` prints; the offset takes the kernel's monotonic clock to seconds since the epoch."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if "ActiveState" not in values:
        raise ValueError(
            f"systemctl show printed no ActiveState but {text.strip()[:200]!r}: systemd must be running on this node."
        )
    return Service(
        exists=values.get("LoadState") not in ("not-found", ""),
        running=values["ActiveState"] in RUNNING,
        enabled=values.get("UnitFileState", "").startswith(("enabled", "static", "alias", "indirect", "generated")),
        stale_unit=values.get("NeedDaemonReload") == "yes",
        started=_seconds(values, "ActiveEnterTimestampMonotonic", clock_offset),
        changed=_seconds(values, "StateChangeTimestampMonotonic", clock_offset),
        active=values["ActiveState"] in ("active", "reloading"),
        failed=values["ActiveState"] == "failed",
    )


def _seconds(values: Mapping[str, str], key: str, clock_offset: float) -> float:
    text = values.get(key, "")
    return int(text) / 1e6 + clock_offset if text.isdigit() else clock_offset


def youngest(paths: Iterable[str], now: float) -> float:
    """When the last of these files came to its place or was changed; 0 without any.

    The inode's time, as a package keeps the modification time of its build. A time that is still to come is of before
    a clock was set back, and is ignored: it would ask for a restart in each run.
    """
    times = [0.0]
    for path in paths:
        try:
            times.append(os.stat(path).st_ctime)
        except FileNotFoundError:
            continue
    return max(time for time in times if time <= now)


def actions(service: Service, enabled: bool, restart_after: float, reload_after: float) -> list[str]:
    """The verbs of systemctl that bring the service up to date, in their order; none where it is."""
    verbs = ["daemon-reload"] if service.stale_unit else []
    if enabled and not service.enabled:
        verbs.append("enable")
    if not service.running:
        return [*verbs, "start"]
    if service.started < restart_after or service.stale_unit:
        return [*verbs, "restart"]
    return [*verbs, "reload"] if service.changed < reload_after else verbs


def removal(service: Service) -> list[str]:
    """The verbs of systemctl after which the service neither runs nor is started at a boot; none where that is so."""
    verbs = ["stop"] if service.running else []
    return [*verbs, "disable"] if service.exists and service.enabled else verbs


def is_unchanged(answer: object) -> bool:
    """Whether a module that was asked in check mode found nothing to do: no change, no act, no file that is another."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("done"), list):
        return False  # it failed, was skipped or was never asked
    diff = answer.get("diff") or []
    diffs = diff if isinstance(diff, (list, tuple)) else [diff]
    same = [isinstance(each, Mapping) and each.get("before") == each.get("after") for each in diffs]
    return answer.get("changed") is False and not answer["done"] and all(same)
