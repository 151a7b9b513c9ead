"""What the job does about notices, in training and outside it."""

from __future__ import annotations

from gaudi3_scale.distributed import Team
from gaudi3_scale.interruption.agreement import Agreement
from gaudi3_scale.interruption.departure import Saver, depart
from gaudi3_scale.interruption.notices import Interrupted, Notices
from gaudi3_scale.status import Progress, StatusFile


class Interruption:
    """Agrees, saves, says why, and ends the job."""

    def __init__(self, notices: Notices, team: Team, progress: Progress, status: StatusFile) -> None:
        """Every rank has one, and calls it at the same points."""
        self._notices = notices
        self._team = team
        self._progress = progress
        self._status = status
        self.leaving = False
        """Have all ranks agreed to leave?"""
        self.agreement = Agreement(notices, team.control, team.topology.world_size)
        notices.before_leaving = self._write_down

    def check(self, during: str) -> None:
        """Outside training there is nothing to save: leave if anyone was told to."""
        if self.agreement.now():
            self.leaving = True
            notices = [n for n in self._team.gather(self._notices.notice) if n is not None]
            first = min(notices, key=lambda notice: notice.source == "peer")
            self._leave(f"{first.reason}, during {during}: nothing was there to be saved")

    def stop(self, saver: Saver) -> None:
        """Save the step that was just made if there is time, and leave."""
        self.leaving = True
        progress = self._progress
        left = depart(saver, progress.step, self._team.gather, self._notices.notice)
        self._leave(left.words)

    def _leave(self, words: str) -> None:
        self._write_down(words)
        self._notices.before_leaving = lambda why: None  # it is written down already
        # Nobody goes before all are done: the launcher ends the rest as soon as one has gone.
        self._team.barrier()
        raise Interrupted(f"Interrupted at step {self._progress.step}, as {words}; started again, the job goes on.")

    def _write_down(self, words: str) -> None:
        self._progress.interruption = words
        if self._team.writer:
            self._status.write("interrupted", self._progress)
