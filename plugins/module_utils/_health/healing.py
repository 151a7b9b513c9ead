# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The healing loop's decisions: retry, reset, reload, reboot, isolate, replace. Pure: observations in, decisions out.

The caller carries decisions out and tells how they ended. All state is plain data in ``Fleet``, so that a controller
that was restarted goes on where it was. Guards:

* A verdict that is too old, or from before the node's last remediation ended, changes nothing.
* At most a tenth of the nodes, and at least one, leave service within an hour. More are held back.
* The fence on a node is the truth: a node that healing fenced, and that this state has in service, waits for a person.
* A second remediation within 7 days goes to a person. Such a node stays out until the person releases it.
* In shadow mode decisions are recorded and nothing else happens.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Union

from .actions import DRAINING, ISOLATE, REBOOT, RELOAD, REPLACE, RESET, RETRY
from .engine import ENFORCE, SHADOW
from .verdicts import NODE_FAULT, USER_FAULT

IN_SERVICE, REPAIRING, TESTING, OUT = "in service", "repairing", "testing", "out"
#: Steps of one remediation, each tried when the one before did not help. ``retry`` is one of ports alone, which are
#: taken down and up; of all else it is a second look, in service.
LADDER = (RETRY, RESET, RELOAD, REBOOT, ISOLATE)
NOTIFY, USE_SPARE, HOLD = "notify the user", "use a spare", "hold"
TEST, RETURN, PERSON, TAKE_OVER = "test", "return", "call a person", "take over"


@dataclass(frozen=True)
class Policy:
    """Limits, times in seconds. ``mode`` is shadow or enforce."""

    mode: str = SHADOW
    share: float = 0.10
    window_s: float = 3600.0
    again_s: float = 7 * 86400.0
    stale_s: float = 300.0
    retry_s: float = 120.0

    def allowed(self, nodes: int) -> int:
        """How many nodes may leave service within the window."""
        return max(1, int(self.share * nodes))


@dataclass(frozen=True)
class Seen:
    """A confirmed verdict on a node, read at ``taken_at``. ``components`` are all that a step has to be done to.

    On an ``idle`` node no process holds a card.
    """

    node: str
    component: str
    kind: str
    action: str
    message: str
    taken_at: float
    components: tuple[str, ...] = ()
    idle: bool = False

    @property
    def is_of_ports(self) -> bool:
        """Whether nothing but ports is concerned."""
        return all(" port " in name for name in self.components or (self.component,))


@dataclass(frozen=True)
class Done:
    """A step of a remediation ended."""

    node: str
    ok: bool


@dataclass(frozen=True)
class Fenced:
    """The fence of healing's that an examination saw on a node; ``since`` tells one fence from another."""

    node: str
    reason: str
    step: str
    since: float


@dataclass(frozen=True)
class Unfenced:
    """An examination saw no fence on a node."""

    node: str


@dataclass(frozen=True)
class Released:
    """A person gives a node back."""

    node: str


@dataclass(frozen=True)
class Tested:
    """A node that was tested again; ``message`` says what was found where it is not healthy, ``fence`` which it has.

    ``found`` is the verdict behind that. ``unread`` says what could not be tested, which leaves a suspect one.
    """

    node: str
    healthy: bool
    taken_at: float
    message: str = ""
    fence: float | None = None
    found: Seen | None = None
    unread: str = ""


@dataclass(frozen=True)
class Decision:
    """What is to be done to a node, and why."""

    node: str
    do: str
    reason: str
    shadow: bool = False


@dataclass
class NodeState:
    """Where a node is in its life. ``remediations`` are the times at which one began.

    ``adopted`` is a node whose fence was there and is not of this state's decisions. ``given`` is the fence that a test
    was passed behind, and that may go. ``suspected`` is what jobs said of the node, by job (see ``suspicion``),
    ``acquitted`` when they had said what a test has ended, and ``examined_at`` when that test began.
    """

    state: str = IN_SERVICE
    step: str = ""
    reason: str = ""
    spare: str = ""
    ended_at: float | None = None
    left_at: float | None = None
    components: list[str] = field(default_factory=list)
    remediations: list[float] = field(default_factory=list)
    retried: dict[str, float] = field(default_factory=dict)
    adopted: bool = False
    given: float | None = None
    suspected: dict[str, dict[str, Any]] = field(default_factory=dict)
    acquitted: dict[str, float] = field(default_factory=dict)
    examined_at: float | None = None


@dataclass
class Fleet:
    """All nodes, the spares that are free, and the record of every decision."""

    nodes: dict[str, NodeState]
    spares: list[str] = field(default_factory=list)
    record: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, names: list[str], spares: list[str] | None = None) -> Fleet:
        """A fleet in which every node is in service."""
        return cls({name: NodeState() for name in [*names, *(spares or [])]}, list(spares or []))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Fleet:
        """What ``as_dict`` gave."""
        nodes = {name: NodeState(**state) for name, state in content["nodes"].items()}
        return cls(nodes, list(content["spares"]), list(content["record"]))

    def history(self, node: str) -> list[str]:
        """What happened to a node, a sentence for each decision."""
        return [
            f"{entry['at']:.0f} {'would ' if entry['shadow'] else ''}{entry['do']}: {entry['reason']}"
            for entry in self.record
            if entry["node"] == node
        ]


Observed = Union[Seen, Done, Tested, Released, Fenced, Unfenced]


def decide(fleet: Fleet, observed: Observed, now: float, policy: Policy) -> tuple[Fleet, list[Decision]]:
    """The fleet after an observation, and what is to be done. The given fleet stays as it is."""
    after = Fleet(copy.deepcopy(fleet.nodes), list(fleet.spares), list(fleet.record))
    state = after.nodes.get(observed.node)
    if state is None:
        return after, []
    if isinstance(observed, Seen):
        decisions = _seen(after, state, observed, now, policy)
    elif isinstance(observed, Done):
        decisions = _done(state, observed, now)
    elif isinstance(observed, Released):
        decisions = _released(state, observed, now)
    elif isinstance(observed, Fenced):
        decisions = _fenced(after, state, observed, now)
    elif isinstance(observed, Unfenced):
        decisions = _unfenced(state, observed)
    else:
        decisions = _tested(after, state, observed, now, policy)
    after.record += [{"at": now, **asdict(each)} for each in decisions]
    return after, decisions


def _seen(fleet: Fleet, state: NodeState, seen: Seen, now: float, policy: Policy) -> list[Decision]:
    if state.state != IN_SERVICE or _is_stale(state, seen.taken_at, now, policy):
        return []
    if seen.kind == USER_FAULT:
        return _once(state, seen, now, policy, NOTIFY)
    if seen.kind != NODE_FAULT:
        return []
    action = seen.action
    if action == RETRY:
        asked_at = state.retried.get(seen.component)
        waited = asked_at is not None and policy.retry_s <= now - asked_at <= policy.stale_s + policy.retry_s
        if not waited and not (seen.idle and seen.is_of_ports):
            return _once(state, seen, now, policy, RETRY)
        action = RETRY if seen.is_of_ports else RESET
    elif action not in DRAINING:
        return []
    if policy.mode != ENFORCE:
        return _once(state, seen, now, policy, action)
    left = sum(each.left_at is not None and now - each.left_at < policy.window_s for each in fleet.nodes.values())
    if left >= policy.allowed(len(fleet.nodes)):
        return _once(state, seen, now, policy, HOLD)
    return _leave(fleet, state, seen, action, now, policy)


def _once(state: NodeState, seen: Seen, now: float, policy: Policy, what: str) -> list[Decision]:
    """A decision that changes no state is made once for a component while its verdict stays fresh."""
    key = seen.component if what == RETRY else f"{what} {seen.component}"
    asked_at = state.retried.get(key)
    if asked_at is not None and now - asked_at <= policy.stale_s:
        return []
    state.retried[key] = now
    return [Decision(seen.node, what, seen.message, policy.mode != ENFORCE)]


def _leave(fleet: Fleet, state: NodeState, seen: Seen, action: str, now: float, policy: Policy) -> list[Decision]:
    """Take a node out of service, put a spare in its place, and begin its remediation."""
    again = any(now - began <= policy.again_s for began in state.remediations)
    state.left_at, state.reason = now, seen.message
    state.components = list(seen.components or (seen.component,))
    state.retried.clear()
    decisions = []
    if seen.node in fleet.spares:
        fleet.spares.remove(seen.node)
    elif fleet.spares:
        state.spare = fleet.spares.pop(0)
        decisions.append(Decision(seen.node, USE_SPARE, f"{state.spare} takes the place of {seen.node}"))
    state.remediations.append(now)
    if again or action == REPLACE:
        state.state, state.step = OUT, ISOLATE
        days = policy.again_s / 86400
        why = f"second remediation within {days:.0f} days: {seen.message}" if again else seen.message
        return [*decisions, Decision(seen.node, ISOLATE, why), Decision(seen.node, PERSON, why)]
    if action == ISOLATE:
        state.state, state.step = OUT, ISOLATE
        return [*decisions, Decision(seen.node, ISOLATE, seen.message), Decision(seen.node, PERSON, seen.message)]
    state.state, state.step = REPAIRING, action
    return [*decisions, Decision(seen.node, action, seen.message)]


def _done(state: NodeState, done: Done, now: float) -> list[Decision]:
    if state.state != REPAIRING:
        return []
    if done.ok:
        state.state, state.ended_at = TESTING, now
        return [Decision(done.node, TEST, f"{state.step} is done")]
    return _next(state, done.node, f"{state.step} failed")


def _released(state: NodeState, released: Released, now: float) -> list[Decision]:
    if state.state != OUT:
        return []
    state.state, state.ended_at = TESTING, now
    return [Decision(released.node, TEST, "a person released it")]


def _fenced(fleet: Fleet, state: NodeState, fenced: Fenced, now: float) -> list[Decision]:
    """Take over a node that healing fenced without this state's knowing, so that it comes back by a test alone."""
    if state.state != IN_SERVICE or state.given == fenced.since:
        return []
    state.state, state.adopted, state.left_at = OUT, True, now
    state.step = fenced.step if fenced.step in LADDER else ISOLATE
    state.reason = fenced.reason or "no reason is given"
    state.remediations.append(now)
    if fenced.node in fleet.spares:
        fleet.spares.remove(fenced.node)
    why = f"healing took it out of service, which this record lacks; give it back with health_released: {state.reason}"
    return [Decision(fenced.node, TAKE_OVER, why)]


def _unfenced(state: NodeState, unfenced: Unfenced) -> list[Decision]:
    """Whoever fenced a node that was taken over has given it back."""
    if state.state != OUT or not state.adopted:
        return []
    state.state, state.step, state.adopted = IN_SERVICE, "", False
    return [Decision(unfenced.node, RETURN, "who took it out of service has given it back")]


def _is_stale(state: NodeState, taken_at: float, now: float, policy: Policy) -> bool:
    """Whether a reading is too old, or from before the node's last remediation ended."""
    return now - taken_at > policy.stale_s or (state.ended_at is not None and taken_at <= state.ended_at)


def _tested(fleet: Fleet, state: NodeState, tested: Tested, now: float, policy: Policy) -> list[Decision]:
    if state.state != TESTING or _is_stale(state, tested.taken_at, now, policy):
        return []
    if not tested.healthy:
        return _next(state, tested.node, tested.message or "the test failed")
    state.state, state.step, state.ended_at, state.adopted = IN_SERVICE, "", now, False
    state.given = tested.fence
    reason = f"healthy again after: {state.reason}"
    if state.spare:
        # The spare goes on with the job, and the node that was repaired is the spare now.
        state.spare = ""
        fleet.spares.append(tested.node)
        reason += "; it is a spare now"
    return [Decision(tested.node, RETURN, reason)]


def _next(state: NodeState, node: str, why: str) -> list[Decision]:
    """The next step of the ladder."""
    step = ISOLATE if state.adopted else LADDER[min(LADDER.index(state.step) + 1, len(LADDER) - 1)]
    state.step = step
    if step == ISOLATE:
        state.state = OUT
        return [Decision(node, ISOLATE, why), Decision(node, PERSON, why)]
    state.state = REPAIRING
    return [Decision(node, step, why)]
