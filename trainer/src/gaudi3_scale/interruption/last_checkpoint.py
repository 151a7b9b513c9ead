"""The last checkpoint: saved if there is time for it, never left half written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from gaudi3_scale.distributed.exchange import done_by_all
from gaudi3_scale.interruption.notice import Notice

CAUTION = 1.5
"""A save is begun only if this many times its usual duration is left: other nodes may be saving to the same disks."""


class LastCheckpoint(Protocol):
    """What saves the state at which a training stops."""

    @property
    def newest(self) -> int | None:
        """The newest step that was handed to it or resumed from; the same on all ranks."""

    def save(self, step: int, last: bool = False) -> None:
        """Begin to save the state of this step; the `last` one is uploaded in any case."""

    def wait(self, deadline: float | None) -> bool:
        """Wait until all that was begun is durable, or until a `time.monotonic()`; is it?"""

    def close(self, deadline: float | None) -> bool:
        """Wait for uploads, too."""

    def estimate(self) -> float | None:
        """Seconds from `save` to durable, from measured saves; None before the first."""


@dataclass(frozen=True)
class LastSave:
    """What became of the state at which a training stopped."""

    notice: Notice
    rank: int
    saved: bool
    """Is the step at which the job stopped in a committed checkpoint?"""
    reason: str
    """Why the job left and what became of that step, for the log and status.json."""


def first_notice(gather: Callable[[Any], list[Any]], notice: Notice | None) -> tuple[int, Notice]:
    """The rank that got a notice first (the lowest of several) and its notice, with the earliest deadline of all."""
    # Clocks of nodes differ, spans of time do not.
    spoken = [(n, None if n is None else n.remaining()) for n in gather(notice)]
    heard = [(rank, n, left) for rank, (n, left) in enumerate(spoken) if n is not None and left is not None]
    rank, first, _ = min(heard, key=lambda item: (item[1].source == "peer", item[0]))
    left = min(item[2] for item in heard)
    return rank, Notice(first.source, first.reason, None if left == float("inf") else time.time() + left)


def save_last(saver: LastCheckpoint, step: int, gather: Callable[[Any], list[Any]], notice: Notice | None) -> LastSave:
    """Save what is not saved yet, if the deadline allows it; all ranks must call this, and decide alike."""
    rank, first = first_notice(gather, notice)
    # What was begun before comes first: its end is what a new save would wait for.
    left = min(gather(first.remaining()))
    begun = all(done_by_all(gather, lambda: saver.wait(_until(left))))
    who = f"{first.reason} (rank {rank})"
    estimates = [seconds for seconds in gather(saver.estimate()) if seconds is not None]
    left = min(gather(first.remaining()))
    newest = saver.newest
    if newest != step:
        needed = CAUTION * max(estimates, default=0.0)
        # With nothing to fall back on there is nothing to lose: a save that is cut off leaves no trace.
        if newest is not None and (left < needed or not begun):
            kept = f"step {newest}" if begun else "the newest committed checkpoint"
            takes = (
                f"a checkpoint takes {max(estimates):.1f} s" if estimates else "an earlier checkpoint is not done yet"
            )
            saved = f"{left:.1f} s are left and {takes}, so step {step} is not saved, and the job goes on from {kept}"
            return LastSave(first, rank, False, f"{who}: {saved}")
        if step:
            saver.save(step, last=True)
    if all(done_by_all(gather, lambda: saver.wait(_until(first.remaining())))):
        saved = f"the checkpoint of step {step} is committed" if step else "no step was made yet"
        if not all(done_by_all(gather, lambda: saver.close(_until(first.remaining())))):
            saved += ", but its upload is not complete"
        return LastSave(first, rank, bool(step), f"{who}: {saved}")
    saved = f"the checkpoint of step {step} was not durable in time, and the job goes on from the one before"
    return LastSave(first, rank, False, f"{who}: {saved}")


def _until(left: float) -> float | None:
    """When to stop waiting; the last second is for the way out, as the process ends at the deadline itself."""
    return None if left == float("inf") else time.monotonic() + max(0.0, left - 1)
