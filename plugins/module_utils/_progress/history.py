# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""How long the phases of earlier runs took, and how much time is left by that: kept per user and cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._files import make_folder, write_file

#: Runs that are kept of each kind, and in all.
OF_EACH, IN_ALL = 5, 40
#: A file of that many runs is far smaller.
_LARGEST = 1 << 20
FORM = 1


@dataclass(frozen=True)
class Phase:
    """A phase of a run that has ended: its name, the seconds it took, and whether it changed anything."""

    name: str
    seconds: float
    changed: bool


@dataclass(frozen=True)
class Past:
    """A run that came to its end: what was run (playbook, tags and hosts), and its phases in their order."""

    what: str
    phases: tuple[Phase, ...]


def read(path: str) -> list[Past]:
    """The runs that a file holds, the oldest first; none where it cannot be read or is no such file."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return []
        with open(path, encoding="utf-8") as stream:
            held = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return []
    runs = held.get("runs") if isinstance(held, dict) and held.get("form") == FORM else None
    found = [_past(each) for each in runs] if isinstance(runs, list) else []
    return [each for each in found if each is not None]


def _past(value: object) -> Optional[Past]:
    given: Mapping[str, Any] = value if isinstance(value, dict) else {}
    what, phases = given.get("what"), given.get("phases")
    if not isinstance(what, str) or not isinstance(phases, list) or not phases:
        return None
    found = []
    for each in phases:
        if not isinstance(each, list) or len(each) != 3:
            return None
        name, seconds, changed = each
        if not isinstance(name, str) or isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            return None
        if not 0 <= seconds < 1e8:
            return None
        found.append(Phase(name, float(seconds), changed is True))
    return Past(what, tuple(found))


def with_run(runs: Sequence[Past], run: Past) -> list[Past]:
    """The runs to keep: this one last, and the newest of those before it."""
    same = [each for each in runs if each.what == run.what][-(OF_EACH - 1) :]
    kept = [each for each in runs if each.what != run.what or any(each is one for one in same)]
    return [*kept, run][-IN_ALL:]


def write(path: str, runs: Sequence[Past]) -> None:
    """Write the file at once; OSError where that cannot be."""
    make_folder(os.path.dirname(path))
    held = [
        {"what": run.what, "phases": [[each.name, round(each.seconds, 1), each.changed] for each in run.phases]}
        for run in runs
    ]
    write_file(path, json.dumps({"form": FORM, "runs": held}) + "\n")


@dataclass(frozen=True)
class Left:
    """Seconds that a run still takes: the least and the most."""

    least: float
    most: float


def alike(runs: Sequence[Past], what: str, ended: Sequence[Phase]) -> list[Past]:
    """Earlier runs of the same: those in which the phases that have ended changed something as they did now.

    A first run takes an hour and the next, in which nothing is left to do, a minute.
    """
    same = [run for run in runs if run.what == what]
    now = {phase.name: phase.changed for phase in ended}
    return [run for run in same if all(now.get(phase.name, phase.changed) == phase.changed for phase in run.phases)]


def left(runs: Sequence[Past], what: str, ended: Sequence[Phase], phase: str, elapsed: float) -> Optional[Left]:
    """The time that is left in the phase and behind it, as earlier runs had it; None where none is known."""
    found = []
    for run in alike(runs, what, ended):
        names = [each.name for each in run.phases]
        if phase in names:
            at = names.index(phase)
            found.append(
                max(0.0, run.phases[at].seconds - elapsed) + sum(each.seconds for each in run.phases[at + 1 :])
            )
    return Left(min(found), max(found)) if found else None


def usual(runs: Sequence[Past], what: str, ended: Sequence[Phase], phase: str) -> Optional[float]:
    """The seconds that the phase took in the newest run that was alike; None where none is known."""
    for run in reversed(alike(runs, what, ended)):
        for each in run.phases:
            if each.name == phase:
                return each.seconds
    return None
