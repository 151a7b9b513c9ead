# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What to do about a training job that is there already, to bring it where it is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Protocol

from .spec import FINISHED, RUNNING, SPARE


class Identity(Protocol):
    """What makes two starts of a job the same one, whatever carries it."""

    @property
    def sha256(self) -> str:
        """Identity of the job."""

    @property
    def config_sha256(self) -> str:
        """Identity of the training."""


@dataclass(frozen=True)
class Situation:
    """What is known of a job on a node before anything is done."""

    state: str
    spec_sha256: Optional[str] = None
    config_sha256: Optional[str] = None
    #: The job's folder exists and holds something.
    has_output: bool = False
    #: The unit's file or the job's configuration exists.
    has_setup: bool = False
    #: Somebody stopped it on purpose, and it was not started since.
    stopped_on_purpose: bool = False


@dataclass(frozen=True)
class Decision:
    """What to do about a job: one of keep, start, stop, remove, refuse."""

    action: str
    #: Move the folder of the earlier job aside before the start.
    archive: bool = False
    reason: str = ""

    @property
    def changed(self) -> bool:
        """Whether carrying it out changes the node."""
        return self.action not in ("keep", "refuse")


def decide(
    wanted: str,
    name: str,
    found: Situation,
    spec: Optional[Identity] = None,
    purge: bool = False,
    rejoin: bool = False,
    resume_stopped: bool = True,
) -> Decision:
    """Decide what brings a job from where it is to where it is wanted.

    ``wanted`` is one of started, finished, ended, stopped and absent. A start continues from the checkpoints
    that are there if they are of the very same training, and moves everything aside if they are not. A
    training that is finished stays so, however it would be launched today, and one that was stopped does
    if it is not to be resumed.
    """
    if wanted == "absent":
        gone = not found.has_setup and found.state != RUNNING and not (purge and found.has_output)
        return Decision("keep" if gone else "remove")
    if wanted == "stopped":
        return Decision("stop" if found.state == RUNNING else "keep")
    if wanted == "ended":
        return Decision("keep")
    if spec is None:
        raise ValueError(f"state={wanted} needs the job's specification.")
    same = found.spec_sha256 == spec.sha256
    if found.state == RUNNING:
        if same:
            return Decision("keep")
        return Decision(
            "refuse",
            reason=f"Job {name} is already running on this node under another specification "
            f"({(found.spec_sha256 or 'unknown')[:8]}, asked for {spec.sha256[:8]}): stop it first with "
            "state=stopped, or choose another name.",
        )
    same_training = found.config_sha256 == spec.config_sha256
    if found.state in (FINISHED, SPARE) and same_training and not rejoin:
        return Decision("keep")
    if found.stopped_on_purpose and same_training and not resume_stopped:
        return Decision("keep")
    return Decision("start", archive=found.has_output and not same_training)


def archive_name(name: str, spec_sha256: Optional[str], taken: set[str]) -> str:
    """A free folder name for the output of an earlier job; a dot keeps it apart from any job's name."""
    base = f"{name}.{(spec_sha256 or 'unknown')[:8]}"
    number, candidate = 1, base
    while candidate in taken:
        number += 1
        candidate = f"{base}-{number}"
    return candidate
