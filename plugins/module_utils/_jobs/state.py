# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The state of a training job on a node, from its unit, what was started and what its trainer wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._host.systemd import UnitState
from .decision import Situation
from .spec import ABSENT, FAILED, FINISHED, INTERRUPTED, RUNNING, SPARE, STOPPED, unit_name
from .status import Status
from .unit import INTERRUPTED_EXIT


def fresh(record: Mapping[str, Any], status: Optional[Status], unit: UnitState) -> bool:
    """Whether the trainer wrote its status in the job's last run.

    systemd calls each run by a name of its own, which the unit keeps in a file, since systemd forgets the name of a run
    that ended well. Several nodes may share the job's folder, so there may be several names. Times tell it only
    where no name was kept: a clock may have been set in between.
    """
    if status is None:
        return False
    kept = record.get("invocations") or ()
    runs = {unit.invocation, *kept} - {""}
    if kept or (runs and status.invocation):
        return status.invocation in runs
    return float(status.updated_at) >= float(record.get("started_at") or 0)


def command_of(record: Mapping[str, Any]) -> list[str]:
    """The user's command that a job was started with; empty for the trainer's own jobs."""
    return list((record.get("specification") or {}).get("command") or ())


def state_of(unit: UnitState, has_unit: bool, record: Mapping[str, Any], status: Optional[Status]) -> str:
    """The job's state from its unit and from what its trainer wrote last.

    The unit alone does not do: systemd forgets at a reboot, and a job which ended well is as inactive as
    one which was stopped. The status alone does not do either: a killed trainer leaves "running" behind.
    Of a user's command the launcher writes how it ended; if it could not, an exit status of 0 means the end.
    """
    if unit.up:
        return RUNNING
    if not has_unit:
        return ABSENT
    said = status.state if status is not None else ""
    new = fresh(record, status, unit)
    if said == FINISHED and (new or not unit.failed):
        return FINISHED
    if said in (INTERRUPTED, SPARE) and new:
        return said
    if unit.exit_status == INTERRUPTED_EXIT and not unit.killed:
        return INTERRUPTED
    if command_of(record) and unit.exited and unit.exit_status == 0 and not unit.failed:
        return FINISHED
    if record.get("stopped_at"):
        return STOPPED
    if unit.failed or (new and said == FAILED):
        return FAILED
    return STOPPED


@dataclass(frozen=True)
class Observed:
    """All that a node knows of one job."""

    name: str
    state: str
    unit: UnitState
    record: dict[str, Any]
    """As :func:`record_of` reads it."""
    status: Optional[Status]
    situation: Situation

    @property
    def run(self) -> str:
        """What systemd called the last run; empty where nobody knows, or several nodes keep theirs in one folder."""
        kept: list[str] = self.record.get("invocations") or []
        return self.unit.invocation or (kept[0] if len(kept) == 1 else "")

    def as_dict(self, directory: str) -> dict[str, Any]:
        """The job as a module returns it."""
        return {
            "name": self.name,
            "state": self.state,
            "unit": unit_name(self.name),
            "directory": directory,
            "command": command_of(self.record) or None,
            "spec_sha256": self.record.get("spec_sha256"),
            "active_state": self.unit.active_state,
            "sub_state": self.unit.sub_state,
            "result": self.unit.result,
            "exit_status": self.unit.exit_status,
            "ending": None if self.unit.up else self.unit.ending,
            "status": None if self.status is None else self.status.as_dict(),
        }
