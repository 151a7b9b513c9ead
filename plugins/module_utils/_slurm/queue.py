# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What Slurm says of a job: the commands that ask it, and their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._jobs.spec import ABSENT, FAILED, FINISHED, INTERRUPTED, RUNNING, STOPPED
from .._jobs.status import Status
from .._jobs.unit import INTERRUPTED_EXIT
from .._printable import printable

#: Submitted, and waits for nodes; and a job of which Slurm does not answer.
QUEUED, UNKNOWN = "queued", "unknown"
#: Slurm's states of a job that has no nodes, and of one that is over. All others are of one that has nodes.
_WAITS = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
_OVER = (
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT", "RECONFIG_FAIL"),
)
_STATE = re.compile(r"[A-Z_]{1,32}")


@dataclass(frozen=True)
class SlurmJob:
    """A job as Slurm has it; ``state`` is empty where Slurm has forgotten it."""

    number: int
    state: str = ""
    reason: str = ""
    nodes: str = ""
    exit_status: Optional[int] = None
    script: str = ""

    @property
    def live(self) -> bool:
        """Whether it is queued or has nodes."""
        return bool(self.state) and self.state not in _OVER

    @property
    def waits(self) -> bool:
        """Whether it is queued and has no nodes."""
        return self.state in _WAITS

    @property
    def ending(self) -> Optional[str]:
        """How it ended, in words; None where it has not, or nobody knows."""
        if self.live or not self.state:
            return None
        return f"{self.state}, exit status {self.exit_status}" if self.exit_status else self.state

    def as_dict(self) -> dict[str, Any]:
        """As a module returns it."""
        return {"job": self.number, "state": self.state, "reason": self.reason, "nodes": self.nodes}


def live_argv(squeue: str, user: str, name: str) -> list[str]:
    """The command that names the queued and running jobs of a user with this name."""
    return [squeue, "--noheader", f"--user={user}", f"--name={name}", "--format=%A|%T|%r|%N|%o"]


def live_jobs(said: str) -> list[SlurmJob]:
    """The jobs in the answer to ``live_argv``; lines of another form are no jobs."""
    found = []
    for line in said.splitlines():
        number, *rest = (part.strip() for part in line.split("|", 4))
        if number.isascii() and number.isdecimal() and len(rest) == 4 and _STATE.fullmatch(rest[0]):
            reason = "" if rest[1] == "None" else printable(rest[1], 200)
            found.append(SlurmJob(int(number), rest[0], reason, printable(rest[2], 200), script=rest[3]))
    return found


def shown_argv(scontrol: str, number: int) -> list[str]:
    """The command that shows a job which Slurm remembers."""
    return [scontrol, "--oneliner", "show", "job", str(number)]


def shown_job(said: str, number: int, name: str) -> Optional[SlurmJob]:
    """The job in the answer to ``shown_argv``; None for another one, as a new cluster counts from 1 again."""
    found: dict[str, str] = {}
    for key, value in re.findall(r"(?:^|\s)(JobId|JobName|JobState|Reason|NodeList|ExitCode)=(\S*)", said):
        # The first: behind them stand texts of the job's user, such as its comment.
        found.setdefault(key, value)
    if found.get("JobId") != str(number) or found.get("JobName") != name:
        return None
    if not _STATE.fullmatch(found.get("JobState", "")):
        return None
    said_reason, nodes = (found.get(key, "") for key in ("Reason", "NodeList"))
    return SlurmJob(
        number,
        found["JobState"],
        "" if said_reason == "None" else printable(said_reason, 200),
        "" if nodes == "(null)" else printable(nodes, 200),
        _exit_status(found.get("ExitCode", "")),
    )


def kept_argv(sacct: str, number: int) -> list[str]:
    """The command that asks the accounting for a job which Slurm itself remembers no more.

    Not by its user: slurmdbd 22.05.8 calls a job root's whose end it heard of before its start, until it hears of that.
    """
    columns = "JobIDRaw,JobName,State,ExitCode,NodeList"
    return [sacct, "-nPX", "--allusers", f"--jobs={number}", f"--format={columns}"]


def kept_job(said: str, number: int, name: str) -> Optional[SlurmJob]:
    """The job in the answer to ``kept_argv``; None where it is not there."""
    for line in said.splitlines():
        parts = line.split("|")
        # "CANCELLED by 1000"
        state = parts[2].split()[0] if len(parts) == 5 and parts[2].strip() else ""
        if parts[:2] == [str(number), name] and _STATE.fullmatch(state):
            return SlurmJob(number, state, "", printable(parts[4], 200), _exit_status(parts[3]))
    return None


def _exit_status(said: str) -> Optional[int]:
    found = re.fullmatch(r"(\d{1,3}):\d{1,3}", said)
    return int(found[1]) if found else None


def submitted(said: str) -> Optional[int]:
    """The number in what ``sbatch --parsable`` prints: ``17`` or ``17;cluster``, maybe behind lines of a site's own."""
    lines = said.strip().splitlines()
    found = re.fullmatch(r"(\d{1,12})(?:;\S*)?", lines[-1].strip()) if lines else None
    return int(found[1]) if found else None


def own_job(record: Mapping[str, Any], live: Sequence[SlurmJob], script: str) -> Optional[SlurmJob]:
    """Which of the live jobs of this name the record is of; None where it is none of them.

    A run that ended between sbatch and its note has left a record without a number: then it is the one of its script.
    """
    number = number_of(record)
    if number is not None:
        return next((job for job in live if job.number == number), None)
    if not is_of_slurm(record):
        return None
    return next((job for job in live if job.script == script), None)


def number_of(record: Mapping[str, Any]) -> Optional[int]:
    """The number of the job that was submitted last; None where none is known."""
    found = (record.get("slurm") or {}).get("job")
    return found if isinstance(found, int) else None


def is_of_slurm(record: Mapping[str, Any]) -> bool:
    """Whether the job was last submitted to Slurm, and not started as a unit."""
    return "slurm" in record


def written_since(record: Mapping[str, Any], status: Optional[Status]) -> bool:
    """Whether the trainer wrote its status after the job was submitted last."""
    return status is not None and float(status.updated_at) >= float(record.get("started_at") or 0)


def state_of(
    job: Optional[SlurmJob], record: Mapping[str, Any], status: Optional[Status], has_script: bool = True
) -> str:
    """The job's state from Slurm, from what was submitted and from what its trainer wrote last."""
    if job is not None and job.live:
        return QUEUED if job.waits else RUNNING
    if not is_of_slurm(record) or not has_script:
        return ABSENT
    said = status.state if status is not None and written_since(record, status) else ""
    known = job.state if job is not None else ""
    if known == "COMPLETED" or (not known and said == FINISHED):
        return FINISHED
    if said == INTERRUPTED or (job is not None and known == "FAILED" and job.exit_status == INTERRUPTED_EXIT):
        return INTERRUPTED
    if record.get("stopped_at") or known == "CANCELLED":
        return STOPPED
    return FAILED if known or said == FAILED else STOPPED
