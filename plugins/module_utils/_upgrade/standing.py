# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where a fleet stands under its plan, by its nodes' answers and records: whether it fits, and what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from .._printable import few, printable
from .._refusal import Refusal
from .._release.versions import Release
from . import planned
from .record import THERE, UP, Record, begin, end, may_begin, new
from .state import NodeState, of_answer
from .steps import is_flash

#: Checks whose faults end with the packages and the driver of any upgrade, and the one whose end with flashing.
_MENDED = ("driver-built", "firmware-loaded")
_FLASHED = "firmware-flashed"


def problems(plan: Mapping[str, Any], records: Mapping[str, Record], looks: Mapping[str, Any]) -> list[str]:
    """Why the plan is not carried out, each in one sentence; an answer that cannot be read is its node's alone."""
    states: dict[str, Optional[NodeState]] = {}
    found = []
    for name, answer in looks.items():
        look = typed(answer)
        states[name] = of_answer(look) if look.get("versions") else None
        if "unread" in look:
            found.append(f"{printable(name, 60)} cannot be judged: {look['unread']}")
    under_way = {name: bool(each.begun or each.done or each.phase != UP) for name, each in records.items()}
    known = {name: state for name, state in states.items() if name in plan["fleet"] or state is not None}
    return found + [each for each in planned.refusals(plan, known, under_way) if not _is_said(each, found)]


def unfit(
    plan: Mapping[str, Any],
    records: Mapping[str, Record],
    examinations: Mapping[str, Any],
    lacks: Callable[[Any, Sequence[str]], str],
) -> list[str]:
    """Nodes that have not begun and are not in order, each in one sentence.

    ``examinations`` are their reports, and ``lacks`` says what one has against it but for these checks.
    """
    found = []
    for name, node in plan["nodes"].items():
        if name in records or name not in examinations:
            continue
        mended = (*_MENDED, *([_FLASHED] if any(map(is_flash, node["up"])) else []))
        if why := lacks(examinations[name], mended):
            found.append(f"{name} is not in order now: {why}; repair it first.")
    return found


def flashes(plan: Mapping[str, Any], allowed: bool) -> list[str]:
    """Why a plan that flashes cards is not carried out: nobody has allowed it apart from the plan."""
    names = [name for name, node in plan["nodes"].items() if any(map(is_flash, node["up"]))]
    if allowed or not names:
        return []
    advice = "set upgrade_flash_allowed=true in a service window, or plan without --firmware."
    return [f"The plan flashes cards of {few(names)}, from which there is no automatic way back: {advice}"]


def _is_said(sentence: str, found: Sequence[str]) -> bool:
    return any(sentence.partition(" ")[0] == each.partition(" ")[0] for each in found)


def typed(answer: Any) -> dict[str, Any]:
    """What a node answered, of known kinds; ``unread`` alone where it cannot be read, nothing without an answer."""
    if not isinstance(answer, Mapping) or not answer:
        return {}
    if isinstance(answer.get("unread"), str):
        return {"unread": printable(answer["unread"], 300)}
    held = answer.get("held")
    try:
        if not isinstance(held, (list, tuple)) or not all(isinstance(each, str) for each in held):
            raise Refusal("It does not say which packages are held: ask it again")
        return {**of_answer(answer).as_answer(), "held": [printable(each, 100) for each in held]}
    except Refusal as refusal:
        return {"unread": str(refusal)}


def look_of(answer: Any) -> dict[str, Any]:
    """What a node shows, as steps are judged by it; Refusal for what cannot be read."""
    look = typed(answer)
    if not look.get("versions"):
        raise Refusal("The node does not say what it is: look at it, and run again")
    state = of_answer(look)
    return {
        "packages": dict(state.versions.packages),
        "held": look["held"],
        "driver": state.versions.driver,
        "plugin": state.versions.plugin,
        "fenced": bool(state.fence),
        "jobs": list(state.jobs),
        "left": list(state.fence_jobs),
        "firmware": dict(state.firmware or {}),
    }


def next_of(
    plan: Mapping[str, Any],
    digest: str,
    records: Mapping[str, Record],
    name: str,
    answer: Any,
    ended: tuple[str, str, Sequence[str]],
    now: Optional[float] = None,
) -> tuple[Optional[Record], dict[str, Any]]:
    """The node's record to write, None where it stays as it is, and what the playbook does now.

    ``ended`` is the step that this run carried out, its problem, and the jobs that left by it. ``now`` are seconds of a
    clock that no one sets. Refusal for a node without steps, and for a step that was not begun.
    """
    if name not in plan["nodes"]:
        raise Refusal(f"{printable(name, 60)} has no steps in the plan")
    step, problem, left = ended
    record = records.get(name) or new(digest, name, plan["nodes"][name]["up"])
    if step and step != record.begun:
        raise Refusal(f"{name} has not begun {printable(step, 60)}: another run goes on beside this one, so end one")
    try:
        look = look_of(answer)
    except Refusal as refusal:
        # After a reboot that did not end: what cannot be seen has failed, and what was not begun does not begin.
        if not step:
            raise
        look, problem = {}, problem or str(refusal)
    held = record.held
    if step:
        record = end(record, problem, look, planned.wanted(plan, name, record.is_back, held), left, now)
    why = "" if step else may_begin(records, plan["batches"], name)
    again = not step and bool(record.begun)
    due = ""
    if not why:
        record, due = begin(record, look, now)
    wanted = planned.wanted(plan, name, record.is_back, record.held)
    present = plan["nodes"][name]["before"] if not record.is_back else plan["release"]
    back = record.is_back
    return (record if due or step else None), {
        "step": due,
        "again": again,
        "phase": record.phase,
        "reason": record.reason or why,
        "is_there": record.phase == THERE,
        "release": wanted["release"],
        "card": due.partition(" ")[2],
        "firmware": wanted["firmware"],
        "downgrade": Release.parse(wanted["release"]) < Release.parse(present),
        "surplus": sorted({*look.get("packages", {})} - {*wanted["packages"]}) if back else [],
        "unhold": sorted({*wanted["packages"]} - {*(record.held or ())}) if back and record.held is not None else [],
        "jobs": list(record.jobs),
    }
