# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The healing loop on the controller: reports of nodes in, work for nodes out, and the state that survives a restart.

The caller writes the state before it does the work. Work follows from the state alone, so that a controller that was
restarted in the middle of a step does that step again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from .._refusal import Refusal
from .actions import DRAINING, ERROR, RETRY, SEVERITIES, strongest
from .engine import ENFORCE
from .healing import (
    IN_SERVICE,
    OUT,
    REPAIRING,
    TESTING,
    Decision,
    Done,
    Fleet,
    NodeState,
    Policy,
    Released,
    Seen,
    Tested,
    decide,
)
from .verdicts import NODE_FAULT, USER_FAULT

Event = Union[Seen, Tested, Done, Released]

#: Version of the state's file.
SCHEMA = 1
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
        except (ValueError, KeyError, TypeError, AttributeError):
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


def dump(fleet: Fleet) -> str:
    """The file of a fleet's state."""
    content = {"schema": SCHEMA, **fleet.as_dict()}
    content["record"] = content["record"][-RECORD_LIMIT:]
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def observe(state: str, node: str, health: Mapping[str, Any], taken_at: float) -> list[Event]:
    """What a result of ``gaudi_health_info`` says to the loop about a node that is in this state."""
    faults = [verdict for verdict in health.get("verdicts") or () if _asks_for_a_step(verdict)]
    if state == TESTING:
        if not health.get("versions"):
            return []  # nothing was read of the cards: that neither returns a node nor blames it
        return [Tested(node, not faults, taken_at, faults[0]["message"] if faults else "")]
    users = [
        Seen(node, verdict["component"], USER_FAULT, verdict["action"], verdict["message"], taken_at)
        for verdict in health.get("verdicts") or ()
        if verdict["kind"] == USER_FAULT
    ]
    if not faults:
        return list(users)
    action = strongest([verdict["action"] for verdict in faults])
    chosen = [verdict for verdict in faults if verdict["action"] == action]
    components = tuple(verdict["component"] for verdict in chosen)
    first = chosen[0]
    idle = health.get("idle") is True
    return [*users, Seen(node, first["component"], NODE_FAULT, action, first["message"], taken_at, components, idle)]


def _asks_for_a_step(verdict: Mapping[str, Any]) -> bool:
    bad = SEVERITIES.index(verdict["severity"]) >= SEVERITIES.index(ERROR)
    return bool(verdict["kind"] == NODE_FAULT and bad and (verdict["action"] in DRAINING or verdict["action"] == RETRY))


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
        name: {"step": state.step, "components": state.components, "reason": state.reason}
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


def states(fleet: Fleet) -> dict[str, list[str]]:
    """Names of nodes by state."""
    found: dict[str, list[str]] = {name: [] for name in (IN_SERVICE, REPAIRING, TESTING, OUT)}
    for name, state in fleet.nodes.items():
        found[state.state].append(name)
    return found
