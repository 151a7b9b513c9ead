# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""How far a node is on its way: a record that is written before and after each step, so that a cut loses nothing.

A step that was begun and has not ended is begun again. Each step changes what is not yet as it should be and nothing
else; a card is flashed only where it does not show the firmware. Only a person goes on with a node that is `stuck`,
which stays out of service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from . import steps

SCHEMA = 1
UP, BACK = "up", "back"
THERE, RETURNED, STUCK = "there", "returned", "stuck"
_PHASES = (UP, BACK, THERE, RETURNED, STUCK)
#: Phases after which no further node begins: it did not go as planned.
SURPRISES = (BACK, RETURNED, STUCK)


@dataclass(frozen=True)
class Record:
    """One node under one plan."""

    plan: str
    """Digest of the plan's file."""
    node: str
    up: tuple[str, ...]
    phase: str = UP
    back: tuple[str, ...] = ()
    """The way back, once something failed."""
    done: tuple[str, ...] = ()
    """Steps of the present way that ended well, in their order."""
    begun: str = ""
    """The step that was begun and has not ended."""
    reason: str = ""
    """The first surprise."""
    held: Optional[tuple[str, ...]] = None
    """Packages that were on hold before the first change."""
    jobs: tuple[str, ...] = ()
    """Jobs that left the node for it."""
    began: Optional[float] = None
    """When the step under way began, on a clock that no one sets; None where a cut came between."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long each step of the way up took that was not cut off."""

    @property
    def way(self) -> tuple[str, ...]:
        """The steps of the present way, forward or back."""
        return self.back or self.up

    @property
    def due(self) -> str:
        """The step that comes next, or is to be repeated; empty where there is none."""
        left = self.way[len(self.done) :]
        return left[0] if left and self.phase in (UP, BACK) else ""

    @property
    def is_back(self) -> bool:
        """Whether the present way leads back."""
        return bool(self.back)

    def text(self) -> str:
        """The record's file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, sort_keys=True) + "\n"


def new(plan: str, name: str, way: Sequence[str]) -> Record:
    """A node that has not begun."""
    return Record(plan, name, tuple(way))


def read(text: str, plan: str, name: str, way: Sequence[str]) -> Record:
    """The record in a file; ``Refusal`` where it is another plan's, or was changed by hand into none."""
    advice = "look at the node, then remove the file"
    try:
        found = json.loads(text)
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
        }
        schema = fields.pop("schema")
        made = Record(**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refusal(f"The record of {name} cannot be read: {advice}") from None
    if not _is_whole(made):
        raise Refusal(f"The record of {name} has values that no record has: {advice}")
    if schema != SCHEMA or made.phase not in _PHASES or made.node != name:
        raise Refusal(f"The record of {name} is not of format {SCHEMA}, or another node's: {advice}")
    if made.plan != plan or made.up != tuple(way):
        raise Refusal(f"The record of {name} is of another plan: {advice}")
    if made.done != made.way[: len(made.done)] or made.begun not in ("", made.due):
        raise Refusal(f"The record of {name} has steps in another order than its way: {advice}")
    return made


def _is_whole(made: Record) -> bool:
    """Whether all values of a record are of their kinds, as a file may have any."""
    texts = (made.plan, made.node, made.phase, made.begun, made.reason)
    lists = (made.up, made.back, made.done, made.jobs, made.held if made.held is not None else ())
    timed = isinstance(made.seconds, Mapping) and isinstance(made.began, (int, float, type(None)))
    return (
        timed
        and all(isinstance(each, str) for each in texts)
        and all(isinstance(each, tuple) and all(isinstance(name, str) for name in each) for each in lists)
    )


def begin(record: Record, look: Mapping[str, Any], now: Optional[float] = None) -> tuple[Record, str]:
    """The record to write now, and the step to carry out then; empty where there is none. ``look`` is the node's.

    ``now`` are seconds on a clock that no one sets.
    """
    step = record.due
    if step and step != record.begun:
        first = step == steps.PACKAGES and record.phase == UP and record.held is None
        held = tuple(sorted(look.get("held") or ())) if first else record.held
        record = replace(record, begun=step, held=held, began=now)
    elif record.began is not None:
        record = replace(record, began=None)
    return record, step


def end(
    record: Record,
    problem: str,
    look: Mapping[str, Any],
    wanted: Mapping[str, Any],
    jobs: Sequence[str] = (),
    now: Optional[float] = None,
) -> Record:
    """The record after the step that was begun; ``problem`` says why it failed, and is empty where it did not.

    A step that ended well and that the node does not show has failed as well: ``look`` is held against what the way
    leads to, ``wanted`` (`steps.is_done`).
    """
    step = record.begun
    if not step:
        return record
    if not problem and steps.is_done(step, wanted, look) is False:
        problem = "it ended, and the node does not show what it was for"
    if problem:
        return _failed(record, f"{step}: {printable(problem, 500)}")
    # A run that was cut off in between has not told them, and the fence names them.
    named = [*record.jobs, *jobs, *(look.get("left") or ())]
    left = tuple(dict.fromkeys(map(printable, named))) if step == steps.FENCE else record.jobs
    return _ended(replace(record, jobs=left, seconds=_seconds(record, now)))


def _seconds(record: Record, now: Optional[float]) -> Mapping[str, float]:
    began = record.began
    if began is None or now is None or now < began or record.phase != UP:
        return record.seconds
    return {**record.seconds, record.begun: round(now - began, 1)}


def _ended(record: Record) -> Record:
    done = (*record.done, record.begun)
    phase = record.phase
    if len(done) == len(record.way):
        phase = THERE if phase == UP else RETURNED if steps.leads_home(record.way) else STUCK
    return replace(record, done=done, begun="", phase=phase, began=None)


def _failed(record: Record, reason: str) -> Record:
    begun = (*record.done, record.begun)
    way = steps.back(begun, record.up) if record.phase == UP else None
    record = replace(record, began=None)
    if way is None:
        both = f"{record.reason}; then on the way back {reason}" if record.reason else reason
        return replace(record, phase=STUCK, begun="", reason=both)
    return replace(record, phase=BACK, back=way, done=(), begun="", reason=reason)


def may_begin(records: Mapping[str, Record], batches: Sequence[Sequence[str]], name: str) -> str:
    """Why a node does not begin, or go on, in one sentence; empty where it does.

    One that is under way goes on, forward or back. Another begins when all batches before its own are there, and no
    node was a surprise.
    """
    mine = records.get(name)
    if mine is not None and (mine.begun or mine.done or mine.phase != UP):
        return f"{name} waits for a person: {mine.reason}." if mine.phase == STUCK else ""
    for other, each in records.items():
        if each.phase in SURPRISES:
            return (
                f"{name} does not begin, as {other} did not go as planned ({each.reason}): look at it, and plan again."
            )
    for batch in batches:
        if name in batch:
            return ""
        waiting = [other for other in batch if other not in records or records[other].phase != THERE]
        if waiting:
            return f"{name} does not begin before {waiting[0]} is there."
    return f"{name} has no steps in the plan."
