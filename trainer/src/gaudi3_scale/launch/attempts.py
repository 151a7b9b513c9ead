"""The spans of a launcher: each attempt at the job, from the moment in which its nodes begin to meet.

All attempts at a job belong to one trace, those after a reboot too: what the next launcher of this node has to know
lies beside status.json. An attempt after the first one is a `restart`, with a link to the one before. The nodes take
their trace from the first node of the meeting, over the store in which they have met.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.files import write_atomically
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.meeting_store import MeetingStore
from gaudi3_scale.status import FILE
from gaudi3_scale.traces import switch
from gaudi3_scale.traces.context import VARIABLE, Context
from gaudi3_scale.traces.spans import OFF, Tracer, Value

KEY = "gaudi3/trace"
ANSWER = 1.0
"""Seconds that the first node has to say which trace it is."""
CLOSE = 1.0
"""Seconds in which the last spans may be sent: the unit's time to stop is short."""
LOST = "the launcher was killed, or its node was lost"
_LIMIT = 4096


@dataclass
class Attempt:
    """One attempt, as the next launcher finds it."""

    own: Context
    number: int
    began: int
    before: Context | None = None
    """The attempt before this one."""
    meeting: bool = True
    """Are its processes yet to start?"""
    ended: bool = False


@dataclass
class _Kept:
    """The file beside status.json."""

    path: Path

    def read(self) -> tuple[Context | None, Attempt | None]:
        """What the job's spans belong to, and this node's last attempt; nothing where the file is none of ours."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            with self.path.open(encoding="utf-8") as file:
                found = json.loads(file.read(_LIMIT))
            last = found["attempt"]
            own = Context.parse(last["traceparent"])
            # A clock may have been set back since.
            number, began = int(last["number"]), min(int(last["began"]), time.time_ns())
            if own is not None and number > 0 and began > 0:
                before, ended = Context.parse(last["before"]), bool(last["ended"])
                return Context.parse(found["traceparent"]), Attempt(own, number, began, before, ended=ended)
        return None, None

    def write(self, job: Context, attempt: Attempt) -> None:
        """Keep what the next launcher has to know."""
        last = {
            "traceparent": attempt.own.traceparent,
            "number": attempt.number,
            "began": attempt.began,
            "before": attempt.before.traceparent if attempt.before is not None else "",
            "ended": attempt.ended,
        }
        with contextlib.suppress(OSError):
            text = json.dumps({"schema": 1, "traceparent": job.traceparent, "attempt": last})
            write_atomically(self.path, text)

    def last_sign(self) -> int:
        """When this node's processes wrote of themselves last; 0 if they never did."""
        with contextlib.suppress(OSError):
            return (self.path.parent / FILE).stat().st_mtime_ns
        return 0


class Attempts:
    """The attempts of one launcher; without a tracer it does nothing."""

    def __init__(self, tracer: Tracer = OFF, job: Context | None = None, folder: Path | None = None) -> None:
        """`job` is what the spans belong to, if somebody said so; `folder` is the job's, where that is known."""
        self._tracer, self._job = tracer, job
        self._kept = _kept(folder) if folder is not None else None
        self._before: Attempt | None = None
        self._now: Attempt | None = None
        self._last_sign = 0
        if tracer.on and self._kept is not None:
            self._before = self._kept.read()[1]
            self._last_sign = self._kept.last_sign()

    @classmethod
    def of_launcher(cls, file: Path | None, status: Path | None, environment: Mapping[str, str]) -> Attempts:
        """As the launcher was started.

        Its environment says what the spans belong to. If it does not, they go on with those of the launcher before,
        and belong to what this file says in a job's first launcher.
        """
        if not switch.is_wanted(environment):
            return cls()
        folder = status.absolute().parent if status is not None else None
        known = _kept(folder).read()[0] if folder is not None else None
        job = Context.parse(environment.get(VARIABLE)) or known or (_read(file) if file is not None else None)
        if job is not None:
            os.environ[VARIABLE] = job.traceparent  # for the processes, should it say that nothing is recorded
        names: dict[str, Value] = {"gaudi.job": folder.name} if folder is not None else {}
        return cls(switch.begin("gaudi3-launch", job or Context.new(), _log, names), job, folder)

    def meet(self) -> None:
        """The nodes begin to meet, for a new attempt."""
        if not self._tracer.on:
            return
        if self._now is not None:  # its processes were stopped, as a node came or left
            self._end(self._now, "stopped")
        before, above = self._before, self._job or self._tracer.context
        if before is not None and not before.ended:
            self._record(before, max(before.began, self._last_sign), "lost", LOST)
        number, own = (before.number + 1, before.own) if before is not None else (1, None)
        self._now = Attempt(above.child(), number, self._tracer.now(), own)

    def begin(self, point: Callable[[], tuple[Any, int, int]]) -> None:
        """The nodes have met at this point, and the processes are about to start: they go on with the trace."""
        now = self._now
        if not self._tracer.on or now is None:
            return
        with contextlib.suppress(Exception):  # of a store that is gone: torch has no common class for it
            self._agree(*point())
        job = self._job = self._job or self._root()
        now.own = Context(job.trace, now.own.span)
        now.meeting = False
        self._tracer.adopt(job)
        self._tracer.record("rendezvous", now.began, self._tracer.now(), parent=now.own)
        os.environ[VARIABLE] = now.own.traceparent
        self._keep(now)

    def fail(self) -> None:
        """A process of this attempt failed, which may be no end of the job."""
        if self._now is not None:
            self._end(self._now, "failed", "a process failed")

    def end(self, code: int, spare: bool = False) -> None:
        """The launcher ends with this exit code."""
        if self._now is not None and not (spare and self._job is None):  # a spare node met nobody who knew the trace
            state = "spare" if spare else {0: "finished", EXIT_CODE: "interrupted"}.get(code, "failed")
            self._end(self._now, state, f"exit code {code}" if state == "failed" else None)
        self._tracer.close(CLOSE)

    def _end(self, attempt: Attempt, state: str, error: str | None = None) -> None:
        attempt.ended = True
        self._record(attempt, self._tracer.now(), state, error)
        if not attempt.meeting:
            self._keep(attempt)
        self._before, self._now = attempt, None

    def _record(self, attempt: Attempt, end: int, state: str, error: str | None) -> None:
        self._tracer.record(
            "attempt" if attempt.number == 1 else "restart",
            attempt.began,
            end,
            {"gaudi.attempt": attempt.number, "gaudi.state": state},
            context=attempt.own,
            parent=self._job,
            links=(attempt.before,) if attempt.before is not None else (),
            error=error,
        )

    def _agree(self, store: Any, node: int, nodes: int) -> None:
        """The trace of the first node is that of all."""
        if nodes < 2 or not isinstance(store, MeetingStore):
            return
        if node == 0:
            self._job = self._job or self._root()
            store.set(KEY, self._job.traceparent)
            return
        deadline = time.monotonic() + ANSWER
        while (said := store.peek(KEY)) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        found = Context.parse(said[:_LIMIT].decode("ascii", "replace")) if said is not None else None
        self._job = found or self._job

    def _root(self) -> Context:
        """A span for all others of the job to belong to, where nobody started it who has one."""
        root, now = self._tracer.context, self._tracer.now()
        self._tracer.record("job", self._now.began if self._now is not None else now, now, context=root)
        return root

    def _keep(self, attempt: Attempt) -> None:
        if self._kept is not None and self._job is not None:
            self._kept.write(self._job, attempt)


def _kept(folder: Path) -> _Kept:
    """Nodes may share the folder."""
    return _Kept(folder / f"trace.{socket.gethostname()}.json")


def _read(path: Path) -> Context | None:
    try:
        with path.open(encoding="ascii") as file:
            return Context.parse(file.read(_LIMIT))
    except (OSError, ValueError):
        return None


def _log(text: str) -> None:
    print(f"gaudi3-launch: {text}", file=sys.stderr, flush=True)
