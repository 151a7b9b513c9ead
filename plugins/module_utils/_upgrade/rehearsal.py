# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Rehearses a plan on doubles of its nodes: the way up, every way back, and the power cut at each instant of both.

What decides here is what decides in the playbook: `standing`, `record` and `planned`. Nodes that are alike, with the
same way, are cut once for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from .._printable import few
from .._refusal import Refusal
from .double import Double
from .planned import wanted
from .record import RETURNED, STUCK, THERE, Record, read
from .standing import next_of, problems
from .state import NodeState
from .steps import is_flash

#: More calls of one node than any way has steps, forward and back.
_MOST_CALLS = 200


@dataclass
class Stage:
    """A fleet's doubles and the files of their records, at one instant."""

    doubles: dict[str, Double]
    files: dict[str, str] = field(default_factory=dict)

    def copy(self, names: Sequence[str]) -> Stage:
        """The same instant, of which these nodes may go on by themselves."""
        fresh = {name: self.doubles[name].copy() for name in names}
        return Stage({**self.doubles, **fresh}, dict(self.files))


@dataclass(frozen=True)
class Way:
    """What was rehearsed of nodes that are alike: the way up, or with ``fails`` the one back from that step."""

    nodes: tuple[str, ...]
    fails: str
    end: str
    """The phase in which each ended."""
    back: tuple[str, ...]
    cuts: int


@dataclass(frozen=True)
class Rehearsal:
    """All that was tried."""

    ways: tuple[Way, ...]
    refusals: tuple[str, ...]
    """What was said of a fleet that had drifted, one node at a time."""
    problems: tuple[str, ...]
    """What went wrong; with one the plan was not rehearsed."""

    @property
    def cuts(self) -> int:
        """How often the power went."""
        return sum(each.cuts for each in self.ways)


class Run:
    """One call of the playbook."""

    def __init__(self, plan: Mapping[str, Any], digest: str, stage: Stage, fails: Mapping[str, str]) -> None:
        self.plan, self.digest, self.stage, self.fails = plan, digest, stage, fails
        nodes = plan["nodes"]
        self.records = {name: read(text, digest, name, nodes[name]["up"]) for name, text in stage.files.items()}

    def batch(self, names: Sequence[str]) -> Iterator[str]:
        """Take the nodes of a batch to an end of theirs, beside one another; each instant yields whose it was."""
        going = {name: self._node(name) for name in names}
        while going:
            for name in list(going):
                try:
                    next(going[name])
                except StopIteration:
                    del going[name]
                else:
                    yield name

    def _node(self, name: str) -> Iterator[None]:
        ended: tuple[str, str, Sequence[str]] = ("", "", ())
        double = self.stage.doubles[name]
        for _call in range(_MOST_CALLS):
            record, told = next_of(self.plan, self.digest, self.records, name, double.answer(), ended)
            if record is not None:
                yield  # a cut here leaves the old file
                self.records[name] = record
                self.stage.files[name] = record.text()
                yield  # and here the new one
            step = told["step"]
            if not step:
                return
            leads = wanted(self.plan, name, record.is_back if record else False, record.held if record else None)
            jobs = double.answer()["jobs"]
            problem = ""
            for problem in double.carry_out(told, leads, self.fails.get(name) == step and told["phase"] == "up"):
                if not problem:
                    yield
            ended = (step, problem, [job for job in jobs if job not in double.answer()["jobs"]])
        raise Refusal(f"{name} comes to no end")

    def begin(self) -> None:
        """What the playbook does before the first node. Raises Refusal where the fleet is refused."""
        looks = {name: each.answer() for name, each in self.stage.doubles.items()}
        found = problems(self.plan, self.records, looks)
        if found:
            raise Refusal(f"the run that should go on was refused: {found[0]}")


def rehearse(
    plan: Mapping[str, Any], digest: str, states: Mapping[str, NodeState], held: Mapping[str, Sequence[str]]
) -> Rehearsal:
    """Rehearse a plan that fits these nodes. ``held`` are the packages that each holds back."""
    start = Stage({name: Double(states[name], held.get(name, ())) for name in plan["fleet"]})
    alike = _alike(plan, states, held)
    ways: list[Way] = []
    found: list[str] = []
    for batch in plan["batches"]:
        for name in batch:
            if name not in alike:
                continue
            for fails in ("", *plan["nodes"][name]["up"]):
                try:
                    ways.append(_way(plan, digest, start, batch, name, fails, alike[name]))
                except Refusal as fault:
                    found.append(f"{_where(name, fails)}: {fault}")
        try:
            _whole(plan, digest, start, batch)
        except Refusal as fault:
            found.append(f"Batch of {few(batch)}: {fault}")
            break
    refusals, gaps = _drifts(plan, states, sorted(alike))
    return Rehearsal(tuple(ways), refusals, (*found, *gaps))


def _where(name: str, fails: str) -> str:
    return f"{name}, where {fails} fails" if fails else f"{name}, on its way up"


def _alike(
    plan: Mapping[str, Any], states: Mapping[str, NodeState], held: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Nodes with the same state and way, behind the first of them in the plan's order."""
    kinds: dict[str, list[str]] = {}
    for name in (name for batch in plan["batches"] for name in batch):
        of = [plan["nodes"][name], states[name].as_answer(), sorted(held.get(name, ()))]
        kinds.setdefault(json.dumps(of, sort_keys=True), []).append(name)
    return {names[0]: tuple(names) for names in kinds.values()}


def _whole(plan: Mapping[str, Any], digest: str, stage: Stage, batch: Sequence[str]) -> None:
    """Take the fleet on by one batch."""
    run = Run(plan, digest, stage, {})
    run.begin()
    for _instant in run.batch(batch):
        pass
    late = [name for name in batch if run.records[name].phase != THERE]
    if late:
        raise Refusal(f"{late[0]} is not there: {run.records[late[0]].reason}")


def _way(
    plan: Mapping[str, Any],
    digest: str,
    start: Stage,
    batch: Sequence[str],
    name: str,
    fails: str,
    alike: tuple[str, ...],
) -> Way:
    """One node's way, whole and then cut at each of its instants. ``start`` is the fleet as its batch begins."""
    broken = {name: fails} if fails else {}
    sets = _sets(plan, batch)
    stage, cuts = start.copy(batch), []
    run = Run(plan, digest, stage, broken)
    run.begin()
    for whose in run.batch(batch):
        if whose == name:
            cuts.append(stage.copy(batch))
            _sound(stage, batch, sets, "")
    cuts.append(stage.copy(batch))
    _ends(plan, run.records, start, stage, batch, name, fails)
    lost = [cut.copy(batch) for cut in cuts if cut.doubles[name].is_half]
    for cut in lost:
        _lost(plan, digest, cut, batch, name, broken)
    for number, cut in enumerate(cuts, 1):
        at = f" after a power cut at instant {number}"
        _sound(cut, batch, sets, at)
        half = cut.doubles[name].is_half
        again = Run(plan, digest, cut, broken)
        again.begin()
        for _instant in again.batch(batch):
            _sound(cut, batch, sets, at)
        if sum(cut.doubles[name].flashes.values()) > sum(stage.doubles[name].flashes.values()) + half:
            raise Refusal(f"{name}{at} flashes a card again that was flashed")
        for each in batch:
            _same(stage, cut, run.records[each], again.records[each], each, at)
    return Way(alike, fails, run.records[name].phase, run.records[name].back, len(cuts) + len(lost))


def _lost(
    plan: Mapping[str, Any], digest: str, cut: Stage, batch: Sequence[str], name: str, broken: Mapping[str, str]
) -> None:
    """The power went while a card was flashed, and the card is lost: a person comes, and nothing else is touched."""
    double = cut.doubles[name]
    double.is_lost, begun = True, sum(double.flashes.values())
    again = Run(plan, digest, cut, broken)
    again.begin()
    for _instant in again.batch(batch):
        pass
    if again.records[name].phase != STUCK or not double.answer()["fence"] or sum(double.flashes.values()) != begun:
        raise Refusal(f"{name} does not wait for a person, with a card that a power cut in its flash has lost")


def _sets(plan: Mapping[str, Any], batch: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    both: dict[str, list[dict[str, str]]] = {}
    for name in batch:
        packages = plan["nodes"][name]["packages"].items()
        both[name] = [{package: each[place] for package, each in packages} for place in (0, 1)]
    return both


def _sound(stage: Stage, batch: Sequence[str], sets: Mapping[str, list[dict[str, str]]], at: str) -> None:
    for name in batch:
        fault = stage.doubles[name].fault(sets[name])
        if fault:
            raise Refusal(f"{name}{at}: {fault}")


def _ends(
    plan: Mapping[str, Any],
    records: Mapping[str, Record],
    start: Stage,
    stage: Stage,
    batch: Sequence[str],
    name: str,
    fails: str,
) -> None:
    """Hold the whole run to what it should leave."""
    double, record = stage.doubles[name], records[name]
    flashed = bool(double.flashes)
    end = THERE if not fails else STUCK if flashed or is_flash(fails) else RETURNED
    if record.phase != end:
        raise Refusal(f"{name} ended as {record.phase} and should have as {end}")
    if end == RETURNED and double.shape()[:-1] != start.doubles[name].shape()[:-1]:
        raise Refusal(f"{name} is not what it was before")
    if end == STUCK and not double.answer()["fence"]:
        raise Refusal(f"{name} waits for a person and is in service")
    twice = sorted({*(each for each, number in double.effects.items() if number > 1)})
    if twice:
        raise Refusal(f"{name} did {twice[0]} twice")
    late = [each for each in batch if each != name and records[each].phase != THERE]
    if late:
        raise Refusal(f"{late[0]} of the same batch is not there")
    if not fails:
        return
    after = Run(plan, records[name].plan, stage, {})
    later = [each for other in plan["batches"] if not {*other} & {*records} for each in other]
    for each in later[:1]:
        _record, told = next_of(plan, after.digest, after.records, each, stage.doubles[each].answer(), ("", "", ()))
        if told["step"]:
            raise Refusal(f"{each} begins after the surprise of {name}")


def _same(stage: Stage, cut: Stage, record: Record, again: Record, name: str, at: str) -> None:
    """Hold a run that was cut and continued to the one that was not."""
    whole, other = stage.doubles[name], cut.doubles[name]
    if replace(again, reason=record.reason) != record or other.shape() != whole.shape():
        raise Refusal(f"{name}{at} ends otherwise than without it")
    if other.order != whole.order:
        raise Refusal(f"{name}{at} skips a step, or takes one again after another")
    twice = [each for each, number in other.effects.items() if number > 1]
    if twice:
        raise Refusal(f"{name}{at} does {twice[0]} twice")
    if {*other.flashes} != {*whole.flashes}:
        raise Refusal(f"{name}{at} flashes other cards")


def _drifts(
    plan: Mapping[str, Any], states: Mapping[str, NodeState], names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is said where one node has another kernel, each time another node; and what should have been said."""
    said, gaps = [], []
    for name in names:
        versions = replace(states[name].versions, kernel=f"{states[name].versions.kernel or 'unknown'}-drifted")
        changed = {**states, name: replace(states[name], versions=versions)}
        looks = {each: {**state.as_answer(), "held": []} for each, state in changed.items()}
        found = problems(plan, {}, looks)
        other: Optional[str] = next((each for each in found if each.startswith(f"{name} ")), None)
        if len(found) == 1 and other is not None:
            said.append(other)
        else:
            gaps.append(f"{name}: with another kernel it is not the one that is refused.")
    return tuple(said), tuple(gaps)
