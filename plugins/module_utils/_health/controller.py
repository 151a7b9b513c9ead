# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The healing loop on the controller: reports of nodes in, work for nodes out, and the state that survives a restart.

The caller writes the state before it does the work. Work follows from the state alone, so that a controller that was
restarted in the middle of a step does that step again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from .._refusal import Refusal
from . import suspicion
from .actions import strongest
from .engine import ENFORCE
from .healing import (
    IN_SERVICE,
    OUT,
    REPAIRING,
    TESTING,
    Decision,
    Fenced,
    Fleet,
    NodeState,
    Observed,
    Policy,
    Seen,
    Tested,
    Unfenced,
)
from .report import HEALING, Report, Verdict, read
from .suspicion import EXAMINE, decide, reasons
from .verdicts import NODE_FAULT, USER_FAULT

Event = Union[Observed, suspicion.Event]

#: Version of the state's file.
SCHEMA = 1
_CARD = re.compile(r"accel(\d{1,3})\b")
#: How many decisions the record keeps, the newest.
RECORD_LIMIT = 5000


def restore(text: str | None, nodes: Sequence[str], spares: Sequence[str]) -> Fleet:
    """The fleet of a state's file, None of a first run. Nodes that are new are in service, others are forgotten."""
    if text is None:
        fleet = Fleet.of([node for node in nodes if node not in spares], list(spares))
    else:
        try:
            content = json.loads(text)
            if content.pop("schema") != SCHEMA:
                raise ValueError
            fleet = Fleet.from_dict(content)
            _check(fleet)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise Refusal(
                "the state of the healing loop is not one of this version: move its file away, look at each node that "
                "was out of service, and run again"
            ) from None
    known = {*nodes, *spares}
    new = [spare for spare in spares if spare not in fleet.nodes]
    fleet.spares = [spare for spare in fleet.spares if spare in known] + new
    fleet.nodes = {name: state for name, state in fleet.nodes.items() if name in known}
    for name in [*nodes, *spares]:
        fleet.nodes.setdefault(name, NodeState())
    return fleet


def _check(fleet: Fleet) -> None:
    """See that states are known and times are numbers; ValueError or TypeError where not."""
    for state in fleet.nodes.values():
        if state.state not in (IN_SERVICE, REPAIRING, TESTING, OUT):
            raise ValueError(state.state)
        moments = [state.ended_at or 0, state.left_at or 0, *state.remediations, *state.retried.values()]
        moments += [state.examined_at or 0, *state.acquitted.values()]
        for said in state.suspected.values():
            moments.append(said["at"])
            said["sentence"] = str(said["sentence"])
        if not all(math.isfinite(each) for each in moments):
            raise ValueError("times")
    if not all(math.isfinite(entry["at"]) for entry in fleet.record):
        raise ValueError("times")


def without_future(fleet: Fleet, limit: float, now: float) -> int:
    """Take times after ``now`` as ``limit``, and return how many there were.

    The clock was ahead when they were written. Otherwise all that waits would wait until the clock has come that far.
    """
    count = 0

    def past(moment: float | None) -> float | None:
        nonlocal count
        if moment is None or moment <= now:
            return moment
        count += 1
        return limit

    for state in fleet.nodes.values():
        state.ended_at, state.left_at = past(state.ended_at), past(state.left_at)
        state.remediations = [past(each) or limit for each in state.remediations]
        state.retried = {key: past(each) or limit for key, each in state.retried.items()}
        state.examined_at = past(state.examined_at)
        state.acquitted = {key: past(each) or limit for key, each in state.acquitted.items()}
        for said in state.suspected.values():
            said["at"] = past(said["at"])
    for entry in fleet.record:
        entry["at"] = past(entry["at"])
    return count


def dump(fleet: Fleet) -> str:
    """The file of a fleet's state."""
    content = {"schema": SCHEMA, **fleet.as_dict()}
    content["record"] = content["record"][-RECORD_LIMIT:]
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def observe(state: str, node: str, health: Report | Mapping[str, Any], taken_at: float) -> list[Event]:
    """What a result of ``gaudi_health_info`` says to the loop about a node in this state; nothing if unreadable."""
    try:
        report = health if isinstance(health, Report) else read(health)
    except Refusal:
        return []
    faults = [verdict for verdict in report.verdicts if verdict.asks_for_a_step]
    if state == TESTING:
        if not report.versions:
            return []  # nothing was read of the cards: that neither returns a node nor blames it
        fence = report.fence.since if report.fence is not None else None
        unread = next((each.message for each in (*report.errors, *report.suspects)), "")
        found = _fault(node, report, faults, taken_at) if faults else None
        return [Tested(node, not faults, taken_at, faults[0].message if faults else "", fence, found, unread)]
    users = [
        Seen(node, verdict.component, USER_FAULT, verdict.action, verdict.message, taken_at)
        for verdict in report.verdicts
        if verdict.kind == USER_FAULT
    ]
    return [*users, _fault(node, report, faults, taken_at)] if faults else list(users)


def _fault(node: str, report: Report, faults: Sequence[Verdict], taken_at: float) -> Seen:
    """The strongest of these verdicts, for all components that ask for it."""
    action = strongest([verdict.action for verdict in faults])
    chosen = [verdict for verdict in faults if verdict.action == action]
    components = tuple(verdict.component for verdict in chosen)
    first = chosen[0]
    return Seen(node, first.component, NODE_FAULT, action, first.message, taken_at, components, report.idle)


def of_fences(reports: Mapping[str, Report]) -> list[Event]:
    """What the fences on nodes say to the loop. Those of a person are no concern of it."""
    found: list[Event] = []
    for node, report in reports.items():
        if report.fence is None:
            found.append(Unfenced(node))
        elif report.fence.by == HEALING:
            found.append(Fenced(node, report.fence.reason, report.fence.step, report.fence.since))
    return found


def is_a_persons(report: Report) -> bool:
    """Whether a person has the node out of service."""
    return report.fence is not None and report.fence.by != HEALING


def to_give_back(fleet: Fleet, reports: Mapping[str, Report]) -> list[str]:
    """The nodes in service that still have the fence behind which they passed their test."""
    return [
        node
        for node, report in reports.items()
        if node in fleet.nodes
        and fleet.nodes[node].state == IN_SERVICE
        and report.fence is not None
        and report.fence.by == HEALING
        and fleet.nodes[node].given == report.fence.since
    ]


def advance(fleet: Fleet, events: Iterable[Event], now: float, policy: Policy) -> tuple[Fleet, list[Decision]]:
    """The fleet after all events, and every decision on the way."""
    decisions: list[Decision] = []
    for event in events:
        fleet, more = decide(fleet, event, now, policy)
        decisions += more
    return fleet, decisions


def work(fleet: Fleet, policy: Policy) -> dict[str, dict[str, Any]]:
    """What has to be done now, by node: the step and the components that it is for. Nothing in shadow mode."""
    if policy.mode != ENFORCE:
        return {}
    return {
        name: {
            "step": state.step,
            "components": state.components,
            "cards": sorted({int(found.group(1)) for each in state.components if (found := _CARD.match(each))}),
            "reason": state.reason,
        }
        for name, state in fleet.nodes.items()
        if state.state == REPAIRING
    }


def out_of_service(fleet: Fleet) -> dict[str, dict[str, str]]:
    """The nodes that no job may use: state, step and reason of each."""
    return {
        name: {"state": state.state, "step": state.step, "reason": state.reason}
        for name, state in fleet.nodes.items()
        if state.state != IN_SERVICE
    }


def suspects(fleet: Fleet) -> dict[str, list[str]]:
    """The nodes that jobs named, each with why, the newest first."""
    return {name: reasons(state) for name, state in fleet.nodes.items() if state.suspected}


def examined(fleet: Fleet) -> list[str]:
    """The suspects that are out of service for their test, and for nothing else."""
    return [name for name, state in fleet.nodes.items() if state.state == TESTING and state.step == EXAMINE]


def states(fleet: Fleet) -> dict[str, list[str]]:
    """Names of nodes by state."""
    found: dict[str, list[str]] = {name: [] for name in (IN_SERVICE, REPAIRING, TESTING, OUT)}
    for name, state in fleet.nodes.items():
        found[state.state].append(name)
    return found
