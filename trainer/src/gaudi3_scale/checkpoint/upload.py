"""Copies of committed checkpoints beyond the nodes' disks, in the background of the background."""

from __future__ import annotations

from typing import Protocol

from gaudi3_scale.checkpoint.store import Checkpoint


class Uploader(Protocol):
    """Where committed checkpoints are handed on to."""

    @property
    def idle(self) -> bool:
        """Is nothing being uploaded?"""

    def offer(self, checkpoint: Checkpoint, names: set[str]) -> None:
        """Upload these files of a committed checkpoint, some time."""

    def drain(self, deadline: float | None) -> bool:
        """Wait for what was offered; False if the deadline came first."""
