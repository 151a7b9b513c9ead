"""What the launcher says of a job in status.json: that it began, and how it ended.

A script of the user's may end after its training, or without any; only who waits for its processes knows. What they
wrote themselves in this run stays beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import Outage, overwrite, write_atomically
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.status import FILE, LAST_HANG, SCHEMA, StatusFile, invocation

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    from gaudi3_scale.hangs.verdict import Verdict

RESUMES = "Started again, the job resumes from its newest checkpoint."


class JobOutcome:
    """status.json of this node, written where a path is given, and for a script of the user's only."""

    def __init__(self, path: Path | None, own: bool) -> None:
        """`own`: it is such a script, of which the trainer says nothing."""
        self._path = path
        self._own = own
        self._began = time.time()
        self._hang: dict[str, Any] | None = None
        self._outage = Outage()

    def begin(self) -> None:
        """The processes are about to start: what an earlier run left is over."""
        if self._own:
            self._write({"state": "starting"})

    def spare(self) -> None:
        """This node was not needed."""
        self._write({"state": "spare"})

    def end(self, code: int, why: str | None = None) -> None:
        """The launcher ends with this exit code; `why` counts where no process said more."""
        if not self._own:
            self._add_hang(failed=code not in (0, EXIT_CODE))
            return
        status = self._theirs()
        said = status.get("error") if status.get("state") == "failed" else None
        state = {0: "finished", EXIT_CODE: "interrupted"}.get(code, "failed")
        self._write({**status, "state": state, "error": (said or why) if state == "failed" else None})
        self._add_hang(failed=state == "failed")

    def hang(self, verdict: Verdict, job: Path | None) -> None:
        """Say in the log and in status.json who holds up the others. Called in a thread."""
        print(f"gaudi3-launch: {verdict.sentence}", file=sys.stderr, flush=True)
        self._hang = {**verdict.status(), "at": round(time.time(), 3)}
        self._path = self._path or (job / FILE if job is not None else None)
        self._add_hang(failed=True)

    def pass_on_hang(self) -> None:
        """Processes that are started again keep it in their status.json."""
        if self._hang is not None:
            os.environ[LAST_HANG] = json.dumps(self._hang)

    def _add_hang(self, failed: bool) -> None:
        """Add it to what the processes of this run wrote; where the job failed, it is the reason."""
        if self._hang is None or self._path is None:
            return
        status = self._theirs()
        if not status:
            return
        if failed and status.get("state") == "failed":
            status["error"] = f"{self._hang['sentence']} {RESUMES}"
        self._write({**status, "hang": self._hang})

    def _theirs(self) -> dict[str, Any]:
        """What the processes of this run wrote."""
        assert self._path is not None
        status = StatusFile(self._path).read()
        run, written = invocation().get("invocation"), status.get("invocation")
        # A clock may have been set since this run began.
        ours = written == run if run and written else status.get("updated_at", 0) >= self._began
        return dict(status) if ours else {}

    def _write(self, status: dict[str, Any]) -> None:
        path = self._path
        if path is None:
            return
        own = {"started_at": self._began} if self._own else {}
        text = json.dumps({"schema": SCHEMA, **own, **status, "updated_at": time.time(), **invocation()})

        def replace() -> None:
            try:
                write_atomically(path, text)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    overwrite(path, text)
                    return
                raise

        self._outage.attempt(path, replace)


def code_of(codes: AbstractSet[int]) -> int:
    """What the launcher ends with, given the exit codes of the processes that did not end with 0.

    75 where all were interrupted. 2 where those that ended by themselves refused the request, so that whoever starts
    jobs need not start this one again; the launcher stops the others by SIGTERM, which some answer with 75. Else 1.
    """
    if codes == {EXIT_CODE}:
        return EXIT_CODE
    return ConfigError.exit_code if codes - {EXIT_CODE, -signal.SIGTERM} == {ConfigError.exit_code} else 1


def why(failure: ChildFailedError) -> str:
    """The first process of this node that failed, in a sentence."""
    _, first = failure.get_first_failure()
    how = f"was ended by {first.signal_name()}" if first.exitcode < 0 else f"ended with exit status {first.exitcode}"
    return f"process {first.local_rank} of this node {how}"


def not_met(endpoint: str, failed: Exception) -> str:
    """Why the nodes of the job did not meet, or lost each other, in a sentence: of a RendezvousError or a DistError."""
    from torch.distributed.elastic.rendezvous import (
        RendezvousClosedError,
        RendezvousStateError,
        RendezvousTimeoutError,
    )

    if isinstance(failed, RendezvousStateError):
        found = f" ({failed.__cause__})" if failed.__cause__ is not None else ""
        return (
            f"the rendezvous at {endpoint} holds something that torchrun did not write there{found}, and none of it "
            "was run: let only the job's nodes reach that port, and start the job again"
        )
    if isinstance(failed, RendezvousTimeoutError):
        return f"too few nodes came to the rendezvous at {endpoint} in its time: start the job on all of them"
    if isinstance(failed, RendezvousClosedError):
        return f"the rendezvous at {endpoint} is closed, as the job has ended: start it again on all nodes"
    said = next(iter(str(failed).strip().splitlines()), type(failed).__name__).partition(". See inner exception")[0]
    return (
        f"the rendezvous at {endpoint} does not answer ({said}): see whether the node that has it runs and is reached "
        "at that port, and start the job again on all nodes"
    )
