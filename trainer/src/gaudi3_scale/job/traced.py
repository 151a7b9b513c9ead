"""The trace of a rank: begun with the process, handed on to the callbacks, sent before it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gaudi3_scale.distributed.process_group import Topology
from gaudi3_scale.interruption import Interrupted
from gaudi3_scale.throughput.ledger import process_age
from gaudi3_scale.traces import switch
from gaudi3_scale.traces.context import VARIABLE, Context
from gaudi3_scale.traces.spans import OFF, Tracer, use

CLOSE, HURRIED = 2.0, 1.0
"""Seconds in which the last spans may be sent: of a job that is done, and of one that has to leave or failed."""


@contextmanager
def traced(topology: Topology) -> Iterator[None]:
    """Trace what this process does inside, where that was asked for; its start-up has begun."""
    if not switch.is_wanted(os.environ):
        yield
        return
    parent = Context.parse(os.environ.get(VARIABLE))
    log = _log if topology.local_rank == 0 else _silent
    tracer = switch.begin("gaudi3-train", parent or Context.new(), log, {"gaudi.rank": topology.rank})
    _begin(tracer, alone=parent is None)
    use(tracer)
    seconds, error = HURRIED, None
    try:
        yield
        seconds = CLOSE
    except Interrupted:
        raise
    except BaseException as failed:
        error = type(failed).__name__
        raise
    finally:
        use(OFF)
        tracer.close(seconds, error)


def _begin(tracer: Tracer, alone: bool) -> None:
    """The start-up, which begins with the process; below a span of its own where nobody else has one."""
    now = tracer.now()
    began = now - int(process_age() * 1e9)
    if alone:
        tracer.record("job", began, now, context=tracer.context)
    tracer.begin("start-up", start=began)
    tracer.record("imports", began, now)


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    """Another process of the node says the same."""
