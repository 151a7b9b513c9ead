"""What a training does about notices: agrees, saves, says why, and ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gaudi3_scale.distributed.exchange import all_gather
from gaudi3_scale.interruption.agreement import Agreement
from gaudi3_scale.interruption.last_checkpoint import LastCheckpoint, save_last
from gaudi3_scale.interruption.notice import BUDGET, Notice
from gaudi3_scale.interruption.notices import Interrupted, Notices

if TYPE_CHECKING:
    from gaudi3_scale.distributed.process_group import ProcessGroup
    from gaudi3_scale.status import Progress, StatusFile


class Interruption:
    """Every rank has one, and calls it at the same points."""

    def __init__(self, notices: Notices, group: Any, world_size: int, record: Callable[[str], None]) -> None:
        """`group` is a gloo process group of all ranks, None for a rank that is alone.

        `record` writes down why the training leaves; it may be called in another thread, when the process ends at once.
        """
        self._notices = notices
        self._group = group
        self._record = record
        self.leaving = False
        """Have all ranks agreed to leave?"""
        self._over_budget = False
        self.agreement = Agreement(notices, group, world_size)
        notices.before_leaving = record

    @classmethod
    def of_job(
        cls, notices: Notices, process_group: ProcessGroup, progress: Progress, status: StatusFile
    ) -> Interruption:
        """For a job with this progress, which each node's writer writes down."""

        def record(reason: str) -> None:
            progress.interruption = reason
            if process_group.writer:
                status.write("interrupted", progress)

        return cls(notices, process_group.control, process_group.topology.world_size, record)

    def check(self, during: str, step: int) -> None:
        """Outside training there is nothing to save: raise Interrupted on all ranks if any of them has a notice."""
        if self.agreement.now():
            self.leaving = True
            notices = [n for n in self._gather(self._notices.notice) if n is not None]
            first = min(notices, key=lambda notice: notice.source == "peer")
            reason = f"{first.reason}, during {during}: nothing was there to be saved"
            self._over_budget = any(notice.source == BUDGET for notice in notices)
            self._leave(reason)
            raise self.interrupted(step, reason)

    def stop(self, saver: LastCheckpoint, step: int) -> str:
        """Save the step that was just made if there is time; why the training ends. All ranks are there then."""
        self.leaving = True
        last = save_last(saver, step, self._gather, self._notices.notice)
        self._over_budget = last.notice.source == BUDGET
        self._leave(last.reason)
        return last.reason

    def tell(self, notice: Notice) -> None:
        """Have all ranks leave, as at any notice."""
        self._notices.tell(notice)

    def interrupted(self, step: int, reason: str) -> Interrupted:
        """What a job that has left ends with: why, and how it goes on."""
        then = "raise cost.budget to go on" if self._over_budget else "started again, the job goes on"
        return Interrupted(f"Interrupted at step {step}, as {reason}; {then}.")

    def _leave(self, reason: str) -> None:
        self._record(reason)
        self._notices.before_leaving = lambda why: None  # it is written down already
        # Nobody goes before all are done: the launcher ends the rest as soon as one has gone.
        self._gather(None)

    def _gather(self, value: Any) -> list[Any]:
        return [value] if self._group is None else all_gather(value, self._group)
