"""Where the wall time of a job goes, from the start of its first process to now, across kills and restarts.

At every moment exactly one part is running, so that the parts of a process sum to its age to the nanosecond; `other`
is what no other part claims. Between processes nothing runs: that time is counted too. What was written is cumulative
within a process, so that a lost line loses nothing but detail, and a line is appended by one write: a kill leaves at
most one unfinished line at the end of the file, which a reader passes over and the next writer closes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from gaudi3_scale.files import Outage
from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.ring import mark
from gaudi3_scale.status import last_hang

T = TypeVar("T")
P = ParamSpec("P")

STARTUP = "startup"
COMPUTE = "compute"
DATA = "data_wait"
CHECKPOINT = "checkpoint_stall"
EVALUATION = "evaluation"
OTHER = "other"
MEASURED = (STARTUP, COMPUTE, DATA, CHECKPOINT, EVALUATION, OTHER)
"""What a process measures of itself; see `goodput.PARTS` for what follows from several of them."""

_PHASES = {
    STARTUP: ring.STARTUP,
    COMPUTE: ring.BETWEEN,  # until the strategy says more
    DATA: ring.DATALOADER,
    CHECKPOINT: ring.CHECKPOINT,
    EVALUATION: ring.EVALUATION,
    OTHER: ring.BETWEEN,
}
"""Where the code stands, for whoever asks why it does not go on."""
APPEND_SECONDS = 30.0
"""Between lines in the middle of a run; a checkpoint always gets one, and what follows it dies with the process."""


class Ledger:
    """The account of this process; `path` None keeps it in memory only."""

    def __init__(
        self,
        path: Path | None = None,
        age: float = 0.0,
        clock: Callable[[], int] = time.perf_counter_ns,
        wall: Callable[[], float] = time.time,
        outage: Outage | None = None,
    ) -> None:
        """Begin with `startup`; `age` seconds of it have passed already."""
        self.path = path
        self.about: dict[str, Any] = {}
        """What else every line says, such as the price of an hour."""
        self.more: Callable[[], dict[str, Any]] | None = None
        """Gives what the next line says besides, and no other line."""
        self._outage = outage or Outage()
        self._clock, self._wall = clock, wall
        self._nanoseconds = dict.fromkeys(MEASURED, 0)
        self._nanoseconds[STARTUP] = int(age * 1e9)
        self._part = STARTUP
        self._since = clock()
        self._appended = -APPEND_SECONDS
        self._began = wall() - age
        self._run = f"{self._began:.6f}-{os.getpid()}"

    def now(self) -> int:
        """Nanoseconds of its clock."""
        return self._clock()

    def switch(self, part: str) -> str:
        """From now on this part runs; returns the one that ran until now. About half a microsecond."""
        now = self._clock()
        before = self._part
        if now > self._since:
            self._nanoseconds[before] += now - self._since
        self._since = now
        if part != before:
            self._part = part
            mark(_PHASES[part])
        return before

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """What happens inside is of this part; what ran before goes on afterwards."""
        before = self.switch(part)
        try:
            yield
        finally:
            self.switch(before)

    def waits(self, batches: Iterable[T]) -> Iterable[T]:
        """The same batches; what fetching each of them takes is `data_wait`."""
        return _Waited(self, batches)

    def nanoseconds(self) -> dict[str, int]:
        """Each part up to now; the sum is the age of the process."""
        self.switch(self._part)
        return dict(self._nanoseconds)

    def resumed(self, step: int) -> dict[str, Any]:
        """This process starts from the state after `step`: what its predecessors did beyond it is lost."""
        hang = last_hang()
        return self._append({"event": "start", "step": step, **({"hang": hang} if hang is not None else {})})

    def append(self, step: int, force: bool = False) -> None:
        """Write the account after a step; every few seconds at most, unless forced."""
        now = time.monotonic()
        if force or now - self._appended >= APPEND_SECONDS:
            self._appended = now
            self._append({"event": "account", "step": step})

    def finished(self, step: int) -> None:
        """The job is done: time that passes from here to a continuation is nobody's loss."""
        self._append({"event": "finished", "step": step})

    def _append(self, line: dict[str, Any]) -> dict[str, Any]:
        line |= self.about | {
            "run": self._run,
            "began": self._began,
            "time": self._wall(),
            "nanoseconds": self.nanoseconds(),
        }
        if self.path is None:
            return line
        if self.more is not None:
            line |= self.more()
        self._outage.append(self.path, json.dumps(line) + "\n")
        return line


class _Waited(Iterable[T]):
    """Batches with their waiting time told to a ledger."""

    def __init__(self, ledger: Ledger, batches: Iterable[T]) -> None:
        self._ledger = ledger
        self._batches = batches

    def __iter__(self) -> Iterator[T]:
        switch, fetch = self._ledger.switch, iter(self._batches).__next__
        while True:
            before = switch(DATA)
            try:
                batch = fetch()
            except StopIteration:
                return
            finally:
                switch(before)
            yield batch

    def __getattr__(self, name: str) -> Any:
        """Whatever else the batches can do (`state_dict`, `sampler`, ...)."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._batches, name)


def accounted(part: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator: what the function takes is of this part, in the ledger that is current when it is called."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            with current().during(part):
                return function(*args, **kwargs)

        return timed

    return decorate


def process_age() -> float:
    """Seconds since this process was started, its imports included; 0 where the kernel does not tell."""
    try:
        started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError, IndexError):
        return 0.0


_current = Ledger()


def current() -> Ledger:
    """The ledger of this process's job; one that is kept in memory only where there is no job."""
    return _current


def use(ledger: Ledger) -> Ledger:
    """Make it the one that `current` gives."""
    global _current
    _current = ledger
    return ledger
