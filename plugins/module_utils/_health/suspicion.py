# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Nodes that a hang of a job names: each is tested with load at its next idle moment, and nothing else follows.

What a job says is its user's word. So it takes no node away from a job: a suspect is tested when nothing runs on it,
at most once in six hours, and leaves service by a verdict of that test alone. Nor does it count for the share of nodes
that may leave. A job can make suspects of its own nodes only, by root's record of the job. Pure, as healing is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Union

from . import healing
from .engine import ENFORCE
from .healing import IN_SERVICE, RETURN, TEST, TESTING, Decision, Done, Fleet, NodeState, Policy, Released, Tested
from .report import Report

#: The step of a node that is out of service for the test alone.
EXAMINE = "examine"
SUSPECT, ACQUIT, PUT_OFF = "suspect", "end the suspicion", "put off"
PASSED = "it passed the tests under load"
#: Kinds of hangs for which the node may be the reason. The others are calls that a program makes differently on its
#: ranks, or a process that somebody stopped.
KINDS = frozenset({"loader", "checkpoint", "late", "dead node"})
#: Seconds between two tests of a suspect.
REST = 6 * 3600.0
#: Jobs that make a suspect of one node, the newest.
MOST_JOBS = 16


@dataclass(frozen=True)
class Suspected:
    """A job named the node as the one that held up the others, at ``at``."""

    node: str
    job: str
    sentence: str
    at: float


@dataclass(frozen=True)
class Free:
    """A node was read at ``taken_at``: it needs no repair, and no process holds a card."""

    node: str
    taken_at: float


@dataclass(frozen=True)
class Busy:
    """A job runs on a node that was to be tested."""

    node: str


@dataclass(frozen=True)
class Passed:
    """A node has just passed all tests under load, for which it got a passport."""

    node: str


Event = Union[Suspected, Free, Busy, Passed]


def of_hangs(reports: Mapping[str, Report], names: Sequence[str], now: float) -> list[Suspected]:
    """The nodes that jobs name, in what all nodes reported; a name that is not one node's alone is nobody's."""
    found: dict[tuple[str, str], Suspected] = {}
    for report in reports.values():
        for hang in report.hangs:
            if hang.kind not in KINDS:
                continue
            for host in hang.nodes:
                node = _node_of(host, reports, names)
                if node is None or node not in hang.members:
                    continue
                each = Suspected(node, hang.job, hang.sentence, min(now, hang.at))
                known = found.get((node, hang.job))
                if known is None or each.at > known.at:
                    found[node, hang.job] = each
    return list(found.values())


def _node_of(host: str, reports: Mapping[str, Report], names: Iterable[str]) -> str | None:
    """The node that calls itself so, else the one that is called so."""
    first = host.partition(".")[0]
    named = list(names)
    for fits in (
        [node for node in named if node in reports and reports[node].host == host],
        [node for node in named if node == host],
        [node for node in named if node.partition(".")[0] == first],
    ):
        if len(fits) == 1:
            return fits[0]
    return None


def of_free_nodes(reports: Mapping[str, Report], taken_at: float) -> list[Free]:
    """The nodes that may be tested now."""
    return [
        Free(node, taken_at)
        for node, report in reports.items()
        if report.idle
        and report.cards
        and report.fence is None
        and not any(each.asks_for_a_step for each in report.verdicts)
    ]


def decide(
    fleet: Fleet, observed: Event | healing.Observed, now: float, policy: Policy
) -> tuple[Fleet, list[Decision]]:
    """The fleet after an observation of any kind; what is not about a suspect is the healing loop's."""
    after = Fleet(copy.deepcopy(fleet.nodes), list(fleet.spares), list(fleet.record))
    state = after.nodes.get(observed.node)
    if state is None:
        return after, []
    if isinstance(observed, Suspected):
        decisions = _suspected(state, observed, policy)
    elif isinstance(observed, Free):
        decisions = _free(after, state, observed, now, policy)
    elif isinstance(observed, Busy):
        decisions = _busy(state, observed)
    elif isinstance(observed, Passed):
        decisions = _acquit(state, observed.node, now, PASSED) if state.state == IN_SERVICE else []
    elif isinstance(observed, Tested) and state.step == EXAMINE:
        return _tested(after, state, observed, now, policy)
    elif isinstance(observed, Done) and state.step == EXAMINE:
        # Its fence is there: the test is what was read after that.
        state.ended_at, decisions = now, []
    elif isinstance(observed, Released) and state.state == IN_SERVICE and state.suspected:
        decisions = _acquit(state, observed.node, now, "a person says so")
    else:
        return healing.decide(fleet, observed, now, policy)
    _note(after, decisions, now)
    return after, decisions


def _note(fleet: Fleet, decisions: list[Decision], now: float) -> None:
    fleet.record += [{"at": now, **asdict(each)} for each in decisions]


def _suspected(state: NodeState, observed: Suspected, policy: Policy) -> list[Decision]:
    known, over = state.suspected.get(observed.job), state.acquitted.get(observed.job)
    # The nodes of a job do not say the same second. One that says ever newer ones is written down four times a day.
    if (known and observed.at <= known["at"] + REST) or (over is not None and observed.at <= over + policy.stale_s):
        return []
    state.suspected[observed.job] = {"at": observed.at, "sentence": observed.sentence}
    newest = sorted(state.suspected, key=lambda job: state.suspected[job]["at"])[-MOST_JOBS:]
    state.suspected = {job: state.suspected[job] for job in newest}
    return [Decision(observed.node, SUSPECT, _why(state, observed.job))]


def _why(state: NodeState, job: str) -> str:
    return f"job {job}: {state.suspected[job]['sentence']}"


def reasons(state: NodeState) -> list[str]:
    """Why a node is a suspect, the newest first; none of one that is none."""
    return [_why(state, job) for job in sorted(state.suspected, key=lambda job: -state.suspected[job]["at"])]


def _free(fleet: Fleet, state: NodeState, free: Free, now: float, policy: Policy) -> list[Decision]:
    if not state.suspected or state.state != IN_SERVICE or now - free.taken_at > policy.stale_s:
        return []
    shadow = policy.mode != ENFORCE
    before = state.retried.get(EXAMINE) if shadow else state.examined_at
    if before is not None and now - before < REST:
        return []
    why = reasons(state)[0]
    if shadow:
        state.retried[EXAMINE] = now
        return [Decision(free.node, TEST, why, True)]
    under_test = sum(each.state == TESTING and each.step == EXAMINE for each in fleet.nodes.values())
    if under_test >= policy.allowed(len(fleet.nodes)):
        return []
    state.state, state.step, state.reason = TESTING, EXAMINE, why
    state.examined_at = state.ended_at = now
    return [Decision(free.node, TEST, why)]


def _busy(state: NodeState, busy: Busy) -> list[Decision]:
    if state.state != TESTING or state.step != EXAMINE:
        return []
    _back(state)
    state.examined_at = None
    return [Decision(busy.node, PUT_OFF, "a job runs there: it is tested when the node is idle again")]


def _back(state: NodeState) -> None:
    state.state, state.step = IN_SERVICE, ""


def _acquit(state: NodeState, node: str, until: float, why: str) -> list[Decision]:
    """End what was said of the node until then; a hang after that is another one."""
    over = [job for job, said in state.suspected.items() if said["at"] <= until]
    for job in over:
        state.acquitted[job] = state.suspected.pop(job)["at"]
    return [Decision(node, ACQUIT, f"{why} (job {', '.join(over)})")] if over else []


def _tested(fleet: Fleet, state: NodeState, tested: Tested, now: float, policy: Policy) -> tuple[Fleet, list[Decision]]:
    """The end of a suspect's test: it returns, or a verdict was found that counts as any other one does."""
    if state.state != TESTING or now - tested.taken_at > policy.stale_s or tested.taken_at <= (state.ended_at or 0.0):
        return fleet, []
    _back(state)
    state.ended_at, state.given = None, tested.fence
    if tested.found is not None:
        return healing.decide(fleet, tested.found, now, policy)
    if tested.unread:
        decisions = [Decision(tested.node, RETURN, f"it stays a suspect, as not all was tested: {tested.unread}")]
    else:
        decisions = [*_acquit(state, tested.node, tested.taken_at, PASSED), Decision(tested.node, RETURN, PASSED)]
    _note(fleet, decisions, now)
    return fleet, decisions


def forget(fleet: Fleet, now: float, policy: Policy) -> None:
    """Drop what is so old that it says nothing of a node any more."""
    for state in fleet.nodes.values():
        fresh = now - policy.again_s
        state.suspected = {job: said for job, said in state.suspected.items() if said["at"] > fresh}
        state.acquitted = {job: at for job, at in state.acquitted.items() if at > fresh}
