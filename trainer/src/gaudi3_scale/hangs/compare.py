"""Which process the others wait for, by what all of them have noted. Pure: no process, no file, no clock.

Collectives are numbered in each group. Where two ranks made different calls under one number, the one that departs from
what the others did, or from what all did in the steps before, is named. Where the calls agree, a rank that did not
enter what others entered holds them up, unless it waits in turn for a rank that did not enter something else. A rank is
named with certainty if no other reading of the notes is left; with too little evidence nobody is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.view import Call, GroupView, View

Kind = Literal[
    "late", "loader", "checkpoint", "stopped", "dead node", "skipped", "order", "sequence", "shape", "extra", "wedge",
    "slow", "unknown",
]  # fmt: skip
What = tuple[str, tuple[int, ...], str]
"""Operation, shape and type: what ranks have to agree on."""
STUCK = 0.25
"""A rank that did something within the last quarter of the others' waiting is slow, and not stuck."""
AGREEING = 4
"""This many calls on which all agree, after one on which they did not, make that one harmless."""
WAITING = (ring.ENDS[ring.HUNG], ring.ENDS[ring.TIMED_OUT], ring.ENDS[ring.LOST])


@dataclass(frozen=True)
class HangFinding:
    """What the comparison found."""

    kind: Kind
    ranks: tuple[int, ...] = ()
    """Who holds up the others; nobody where that is not known."""
    certain: bool = False
    call: Call | None = None
    """What the others entered, or all did."""
    theirs: Call | None = None
    """What the named rank entered in its place."""
    waiting: int = 0
    """Ranks that wait."""
    silent: tuple[int, ...] = ()
    """Ranks of which nothing is known."""


@dataclass(frozen=True)
class Evidence:
    """All that is known of a job's processes."""

    world_size: int
    views: Mapping[int, View]
    groups: Mapping[str, GroupView]
    silent_nodes: tuple[int, ...] = ()
    """Nodes whose launcher gave no answer."""
    cut_off: bool = False
    """Whether the store in which the launchers meet did not answer, so that no node is heard."""
    head: tuple[int, ...] = ()
    """The ranks of the node that has this store, where that is known."""
    by_rank: dict[int, dict[tuple[str, int], Call]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank, view in self.views.items():
            self.by_rank[rank] = {(call.group, call.number): call for call in view.calls}

    @property
    def silent(self) -> tuple[int, ...]:
        """Ranks of which nothing is known."""
        return tuple(rank for rank in range(self.world_size) if rank not in self.views)

    def members(self, group: str) -> list[int]:
        """The ranks of a group of which something is known."""
        return [rank for rank in sorted(self.groups[group].ranks) if rank in self.views]

    def count(self, rank: int, group: str) -> int:
        """How many collectives of this group a rank has entered."""
        return self.views[rank].counts.get(group, 0)

    def call(self, group: str, number: int) -> Call | None:
        """A collective, as the rank that waits the longest in it noted it."""
        found = [calls[group, number] for calls in self.by_rank.values() if (group, number) in calls]
        return max(found, key=lambda call: call.seconds, default=None)


def compare(evidence: Evidence) -> HangFinding | None:
    """Who holds up the others; None if nobody waits, or a process ended by itself, which says so in its own words."""
    if not any(view.end in WAITING for view in evidence.views.values()):
        return None
    found = _disagreement(evidence)
    if found is not None:
        return found
    for view in evidence.views.values():
        if view.end == "failed" or (view.process == "gone" and not view.end):
            return None
    return _behind(evidence)


def _behind(evidence: Evidence) -> HangFinding:
    """The ranks that did not enter what others have entered, and wait for nobody themselves."""
    blocks: dict[int, set[int]] = {rank: set() for rank in evidence.views}
    """The ranks that each rank waits for."""
    for group in evidence.groups:
        members = evidence.members(group)
        counts = {rank: evidence.count(rank, group) for rank in members}
        for rank, count in counts.items():
            blocks[rank] |= {other for other, reached in counts.items() if reached < count}
    late = set().union(*blocks.values()) if blocks else set()
    roots = {rank for rank in late if not blocks[rank]}
    silent = evidence.silent
    if silent:
        roots = {rank for rank in roots if not _waits_for(evidence, rank, silent)}
    stopped = {rank for rank, view in evidence.views.items() if view.process == "stopped"}
    if late and not roots and not silent and not stopped:
        return _circle(evidence, late)
    waiting = len(evidence.views) - len(roots)
    if silent:
        # Whoever is behind besides may be slow, or wait for the silent in a way that was not noted.
        call = _last(evidence, [rank for rank in evidence.views if rank not in roots])
        if evidence.cut_off and evidence.head and not (roots or stopped):
            return HangFinding("dead node", evidence.head, False, call, waiting=waiting, silent=silent)
        if roots or stopped or evidence.cut_off:
            return HangFinding("unknown", call=call, waiting=waiting, silent=silent)
        whole = bool(evidence.silent_nodes)
        return HangFinding("dead node" if whole else "late", silent, whole, call, waiting=waiting, silent=silent)
    if stopped and (not roots or roots & stopped):
        named = tuple(sorted(stopped & roots or stopped))
        call = _missed(evidence, named[0]) or _last(evidence, list(evidence.views))
        return HangFinding("stopped", named, True, call, waiting=len(evidence.views) - len(named))
    if not roots:
        return _nobody_is_behind(evidence)
    return _named(evidence, tuple(sorted(roots)))


def _named(evidence: Evidence, roots: tuple[int, ...]) -> HangFinding:
    waiting = len(evidence.views) - len(roots)
    call = _missed(evidence, roots[0])
    assert call is not None
    idle = min(_idle(evidence.views[rank]) for rank in roots)
    if idle < STUCK * call.seconds:
        return HangFinding("slow", call=call, waiting=waiting)
    phases = {evidence.views[rank].phase for rank in roots}
    phase = phases.pop() if len(phases) == 1 else ""
    of_phase: dict[str, Kind] = {ring.PHASES[ring.DATALOADER]: "loader", ring.PHASES[ring.CHECKPOINT]: "checkpoint"}
    kind = of_phase.get(phase, "late")
    if kind == "late" and evidence.world_size > 2 and len(roots) > waiting:
        # One rank may have made a call that none of the others ever makes.
        return HangFinding("unknown", call=call, waiting=waiting)
    return HangFinding(kind, roots, True, call, waiting=waiting)


def _nobody_is_behind(evidence: Evidence) -> HangFinding:
    views = list(evidence.views.values())
    call = _last(evidence, list(evidence.views))
    inside = call is not None and call.state != ring.RETURNED
    elsewhere = {view.phase for view in views} & {ring.PHASES[ring.DATALOADER], ring.PHASES[ring.CHECKPOINT]}
    if inside and not elsewhere:
        return HangFinding("wedge", call=call, waiting=len(views))
    return HangFinding("unknown", call=call, waiting=len(views))


def _circle(evidence: Evidence, late: set[int]) -> HangFinding:
    """Ranks wait for each other, each in a group of its own: one of them left a collective out."""
    shared = [group for group in evidence.groups if set(evidence.members(group)) >= late]
    places = {rank: tuple(evidence.count(rank, group) for group in shared) for rank in evidence.views}
    usual, number = Counter(places.values()).most_common(1)[0]
    odd = tuple(sorted(rank for rank, place in places.items() if place != usual))
    if 2 * number <= len(places) or not odd:
        return HangFinding("unknown", waiting=len(places))
    group = next(
        (each for each, count in zip(shared, usual, strict=True) if evidence.count(odd[0], each) < count), None
    )
    if group is None:
        return HangFinding("unknown", waiting=len(places))
    call = evidence.call(group, evidence.count(odd[0], group) + 1)
    return HangFinding("skipped", odd, True, call, _newest(evidence.views[odd[0]]), waiting=number)


def _waits_for(evidence: Evidence, rank: int, silent: Iterable[int]) -> bool:
    """Whether the newest call of a rank has not come back, in a group of those of whom nothing is known."""
    call = _newest(evidence.views[rank])
    return call is not None and call.state != ring.RETURNED and bool(evidence.groups[call.group].ranks & set(silent))


def _newest(view: View) -> Call | None:
    return view.calls[-1] if view.calls else None


def _idle(view: View) -> float:
    newest = _newest(view)
    return view.seconds if newest is None else min(view.seconds, newest.seconds)


def _missed(evidence: Evidence, rank: int) -> Call | None:
    """The first collective that others have entered and this rank has not; of several groups, that waits longest."""
    found = []
    for group in evidence.groups:
        if rank in evidence.groups[group].ranks:
            call = evidence.call(group, evidence.count(rank, group) + 1)
            if call is not None:
                found.append(call)
    return max(found, key=lambda call: call.seconds, default=None)


def _last(evidence: Evidence, ranks: Sequence[int]) -> Call | None:
    """The collective that most of these ranks entered last."""
    newest = [call for rank in ranks if (call := _newest(evidence.views[rank])) is not None]
    if not newest:
        return None
    (group, number), _ = Counter((call.group, call.number) for call in newest).most_common(1)[0]
    return next(call for call in newest if (call.group, call.number) == (group, number))


def _disagreement(evidence: Evidence) -> HangFinding | None:
    """Different calls under one number, of which the first is the cause of all others."""
    found = []
    for group in evidence.groups:
        number = _first_difference(evidence, group)
        if number is not None:
            call = evidence.call(group, number)
            assert call is not None
            found.append((call.seconds, group, number))
    if not found:
        return None
    _, group, number = max(found)
    calls = {rank: evidence.by_rank[rank].get((group, number)) for rank in evidence.members(group)}
    made = {rank: call for rank, call in calls.items() if call is not None}
    usual, certain = _usual(evidence, group, number, made)
    if usual is None:
        return HangFinding("sequence", call=evidence.call(group, number), waiting=len(made))
    odd = tuple(sorted(rank for rank, call in made.items() if call.kind != usual))
    reference = next(call for call in made.values() if call.kind == usual)
    theirs = made[odd[0]]
    kind = _departure(evidence, group, number, odd[0], usual)
    certain = certain and not evidence.silent and len({made[rank].kind for rank in odd}) == 1
    return HangFinding(kind, odd, certain, reference, theirs, waiting=len(made) - len(odd))


def _kinds(evidence: Evidence, group: str, number: int) -> set[What]:
    return {calls[group, number].kind for calls in evidence.by_rank.values() if (group, number) in calls}


def _first_difference(evidence: Evidence, group: str) -> int | None:
    """The first number under which ranks called different things, and never agreed again for long."""
    numbers = sorted({number for calls in evidence.by_rank.values() for name, number in calls if name == group})
    agreed, first = 0, None
    for number in numbers:
        kinds = _kinds(evidence, group, number)
        by = sum((group, number) in calls for calls in evidence.by_rank.values())
        if len(kinds) > 1:
            first, agreed = (number if first is None else first), 0
        elif by > 1:
            agreed += 1
            if agreed >= AGREEING:
                first = None
    return first


def _usual(evidence: Evidence, group: str, number: int, made: Mapping[int, Call]) -> tuple[What | None, bool]:
    """What should have been called: what most ranks did, or all of them did before; and whether that is certain."""
    counted = Counter(call.kind for call in made.values()).most_common()
    if 2 * counted[0][1] > len(evidence.groups[group].ranks) and len(made) > 2:
        return counted[0][0], True
    expected = _expected(evidence, group, number)
    if expected is not None and expected in dict(counted):
        return expected, False
    return None, False


def _expected(evidence: Evidence, group: str, number: int, ahead: int = 0) -> What | None:
    """What has followed, so far, the calls that came before this one; `ahead` of it by this many calls."""
    before: list[What] = []
    for each in range(max(1, number - 2 * ring.SLOTS), number):
        kinds = _kinds(evidence, group, each)
        before = [*before, kinds.pop()] if len(kinds) == 1 else []
    for context in (6, 4, 3, 2, 1):
        if len(before) <= context:
            continue
        last = before[-context:]
        places = range(context, len(before) - ahead)
        followed = [before[place + ahead] for place in places if before[place - context : place] == last]
        if followed:
            return max(set(followed), key=followed.count)
    return None


def _departure(evidence: Evidence, group: str, number: int, odd: int, usual: What) -> Kind:
    """In which way a rank departed from what is usual."""

    def called(by: int) -> What | None:
        call = evidence.by_rank[odd].get((group, number + by))
        return call.kind if call is not None else None

    def usually(by: int) -> What | None:
        others = [
            calls[group, number + by].kind
            for rank, calls in evidence.by_rank.items()
            if rank != odd and (group, number + by) in calls and calls[group, number].kind == usual
        ]  # fmt: skip
        return others[0] if others else _expected(evidence, group, number, by)

    first, second = called(0), called(1)
    assert first is not None
    if first == usually(1):
        if second is None:
            return "sequence"
        if second == usual:
            return "order" if usual != usually(2) or called(2) == usually(2) else "sequence"
        return "skipped" if second == usually(2) else "sequence"
    if second == usual:
        return "extra"
    if first[0] == usual[0]:
        return "shape"
    return "sequence"
