"""Speed and goodput of a running job, for whoever reports them."""

from __future__ import annotations

from pathlib import Path

from gaudi3_scale.cost.bill import Bill, Spent
from gaudi3_scale.throughput.goodput import FILE, Goodput, read
from gaudi3_scale.throughput.ledger import CHECKPOINT, EVALUATION, MEASURED, Ledger
from gaudi3_scale.throughput.meter import Meter, Reading


class Watch:
    """Joins the ledger of this process, the account of its predecessors and the meter."""

    def __init__(self, ledger: Ledger, directory: Path | None, step: int) -> None:
        """Go on with the job's ledger in `directory` (None: keep no file) from the state after `step`."""
        self.ledger = ledger
        self.meter = Meter()
        ledger.path = directory / FILE if directory else None
        self._account = Bill(read(ledger.path) if ledger.path else ())
        self._account.add(ledger.resumed(step))
        self._stalled = 0

    def read(self, now: float) -> Reading:
        """The meter's window up to now, in seconds of `time.perf_counter`; begins the next one."""
        spent = self.ledger.nanoseconds()
        stalled = spent[CHECKPOINT] + spent[EVALUATION]
        self.meter.stalled((stalled - self._stalled) / 1e9)
        self._stalled = stalled
        return self.meter.read(now)

    def goodput(self) -> Goodput:
        """Of the job since its first process."""
        return self._account.goodput(self.ledger.nanoseconds())

    def spent_before(self) -> Spent | None:
        """The same until this process was started."""
        return self._account.spent(dict.fromkeys(MEASURED, 0))

    def spent(self) -> Spent | None:
        """Money of the job since its first process; None where the ledger has no price."""
        return self._account.spent(self.ledger.nanoseconds())
