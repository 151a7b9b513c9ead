"""A node's record: cut at every instant of every way, it is resumed by one call, with nothing skipped or done twice."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from upgrade_fleet import CARDS, FIRMWARE, NAMES, NEW, OLD, flashed

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import steps
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.record import (
    BACK,
    RETURNED,
    STUCK,
    THERE,
    UP,
    Record,
    begin,
    end,
    may_begin,
    new,
    read,
)

PLAN = "0" * 64
BEFORE = dict.fromkeys(NAMES, OLD)


class Cut(Exception):
    """The power is gone."""


class FakeNode:
    """A node and the controller's file of it. ``cut`` says after how many instants the power goes; each is counted.

    ``effects`` counts what really changed the node, by step. ``fails`` are steps that end with an error on the way up.
    """

    def __init__(self, way: tuple[str, ...], fails: frozenset[str] = frozenset()) -> None:
        self.way, self.fails = way, fails
        self.file: str | None = None
        self.instants, self.cut = 0, -1
        self.order: list[str] = []
        self.effects: Counter[str] = Counter()
        self.flashes: Counter[str] = Counter()
        self.packages, self.held = dict(BEFORE), {NAMES[0]}
        self.driver, self.plugin = OLD, OLD
        self.fenced, self.left = False, False
        self.jobs = ["pretrain"]
        self.firmware = flashed("1.22.0")

    def instant(self) -> None:
        if self.instants == self.cut:
            self.cut = -1
            raise Cut
        self.instants += 1

    def look(self) -> dict[str, Any]:
        return {
            "packages": dict(self.packages),
            "held": sorted(self.held),
            "driver": self.driver,
            "plugin": self.plugin,
            "fenced": self.fenced,
            "jobs": [] if self.left else list(self.jobs),
            "firmware": dict(self.firmware),
        }

    def wanted(self, record: Record) -> dict[str, Any]:
        release = OLD if record.phase in (BACK, RETURNED) else NEW
        return {
            "release": release,
            "firmware": FIRMWARE,
            "packages": dict.fromkeys(NAMES, release),
            "exact": release == OLD,
            "held": record.held,
        }

    def write(self, record: Record) -> None:
        self.instant()  # cut before: the old file is there
        self.file = record.text()
        self.instant()  # cut after: the new one is

    def resume(self) -> Record:
        """What one call does: read the record, and go on to the end."""
        record = new(PLAN, "gaudi-1", self.way)
        if self.file is not None:
            record = read(self.file, PLAN, "gaudi-1", self.way)
        while True:
            record, step = begin(record, self.look())
            self.write(record)
            if not step:
                return record
            problem = self.carry_out(step, record)
            record = end(record, problem, self.look(), self.wanted(record))
            self.write(record)

    def carry_out(self, step: str, record: Record) -> str:
        """Each step changes the node at single instants; packages half of them first, a fence before its jobs."""
        self.instant()
        if step in self.fails and record.phase == UP:
            return f"{step} is broken"
        before = self.look()
        release = self.wanted(record)["release"]
        first = f"{record.phase} {step}"
        if not self.order or self.order[-1] != first:
            self.order.append(first)
        if step == "packages":
            for name in NAMES:
                self.packages[name] = release
                self.instant()
            self.held = set(record.held or ()) if record.phase == BACK else set(NAMES)
        elif step == "driver":
            self.driver = release
        elif step == "pytorch":
            self.plugin = release
        elif step == "fence":
            self.fenced = True
            self.instant()
            self.left = True
        elif step == "unfence":
            self.fenced, self.left = False, False
        elif steps.is_flash(step):
            card, image = step.partition(" ")[2], flashed("1.23.0")[CARDS[0]]
            if self.firmware[card] != image:
                self.flashes[card] += 1
                self.firmware[card] = "half"
                self.instant()
                self.firmware[card] = image
        if self.look() != before:
            self.effects[first] += 1
        self.instant()
        return ""


WAYS: dict[str, Callable[[], FakeNode]] = {
    "upgrade": lambda: FakeNode(steps.up((), False)),
    "upgrade with PyTorch": lambda: FakeNode(steps.up((), True)),
    "firmware": lambda: FakeNode(steps.up(CARDS, False)),
    "firmware that fails": lambda: FakeNode(steps.up(CARDS, False), frozenset({f"firmware {CARDS[1]}"})),
    "health after firmware fails": lambda: FakeNode(steps.up(CARDS, False), frozenset({"health"})),
    "unfence after firmware fails": lambda: FakeNode(steps.up(CARDS, False), frozenset({"unfence"})),
    **{f"rollback from {step}": lambda step=step: FakeNode(steps.up((), True), frozenset({step})) for step in  # type: ignore[misc]
       ("fence", "packages", "driver", "pytorch", "health", "passport", "unfence")},
}  # fmt: skip
ENDS = {"upgrade": THERE, "upgrade with PyTorch": THERE, "firmware": THERE}
ENDS |= {"firmware that fails": STUCK, "health after firmware fails": STUCK, "unfence after firmware fails": STUCK}


@pytest.mark.parametrize("name", WAYS)
def test_power_cut_at_every_instant_is_resumed_by_one_call(name: str) -> None:
    whole = WAYS[name]()
    record = whole.resume()
    assert record.phase == ENDS.get(name, RETURNED)
    assert whole.instants > 20 and all(number == 1 for number in whole.effects.values())
    for instant in range(whole.instants):
        node = WAYS[name]()
        node.cut = instant
        with pytest.raises(Cut):
            node.resume()
        after = node.resume()
        at = f"cut at instant {instant}"
        assert after == record, at
        assert node.look() == whole.look(), at
        assert node.order == whole.order, f"{at}: a step was skipped, or came again after another one"
        # Packages of which the power cut has left a part are finished, and so is a fence; nothing else changes twice.
        twice = {step for step, number in node.effects.items() if number > 1}
        assert not twice, at
        assert sum(node.flashes.values()) - sum(whole.flashes.values()) in (0, 1), f"{at}: one flash was cut at most"
        assert whole.flashes.keys() == node.flashes.keys(), at


def test_what_each_way_leaves() -> None:
    there, back = WAYS["upgrade with PyTorch"](), WAYS["rollback from health"]()
    assert there.resume().phase == THERE and there.packages == dict.fromkeys(NAMES, NEW) and there.driver == NEW
    record = back.resume()
    assert (record.phase, record.reason) == (RETURNED, "health: health is broken")
    assert (back.packages, back.held, back.driver, back.plugin) == (BEFORE, {NAMES[0]}, OLD, OLD)
    assert not back.fenced, "it is given back to jobs after its test"


def test_no_way_back_is_tried_from_a_flashed_card() -> None:
    node = WAYS["firmware that fails"]()
    record = node.resume()
    assert (record.phase, record.reason) == (STUCK, f"firmware {CARDS[1]}: firmware {CARDS[1]} is broken")
    assert node.fenced and node.packages == dict.fromkeys(NAMES, NEW)
    assert [card for card in CARDS if "1.23.0" in node.firmware[card]] == [CARDS[0]], "the third was not touched"


def test_a_way_back_that_fails_leaves_the_node_to_a_person() -> None:
    record = replace(
        new(PLAN, "gaudi-1", steps.up((), False)), phase=BACK, back=("health", "unfence"), reason="driver: x"
    )
    record, step = begin(record, {})
    assert step == "health"
    ended = end(record, "a card is gone", {}, {})
    assert (ended.phase, ended.reason) == (STUCK, "driver: x; then on the way back health: a card is gone")
    assert begin(ended, {}) == (ended, "")


def test_a_step_that_the_node_does_not_show_has_failed() -> None:
    node = FakeNode(steps.up((), False))
    record, _step = begin(new(PLAN, "gaudi-1", node.way), node.look())
    ended = end(record, "", {"fenced": False}, {})
    assert ended.reason == "fence: it ended, and the node does not show what it was for" and ended.phase == BACK


def test_the_jobs_that_left_are_kept_for_the_way_home() -> None:
    record, _step = begin(new(PLAN, "gaudi-1", steps.up((), False)), {})
    ended = end(record, "", {"fenced": True}, {}, ["pretrain"])
    assert ended.jobs == ("pretrain",) and ended.done == ("fence",)
    assert read(ended.text(), PLAN, "gaudi-1", ended.up) == ended


def test_jobs_that_left_before_a_cut_are_those_that_the_fence_names() -> None:
    record, _step = begin(replace(new(PLAN, "gaudi-1", steps.up((), False)), begun="fence"), {})
    assert end(record, "", {"fenced": True, "left": ["pretrain"]}, {}).jobs == ("pretrain",)


def test_the_seconds_of_a_step_are_those_of_one_that_was_not_cut_off() -> None:
    record, _step = begin(new(PLAN, "gaudi-1", steps.up((), False)), {}, 100.0)
    ended = end(record, "", {"fenced": True}, {}, (), 160.25)
    assert (ended.seconds, ended.began) == ({"fence": 60.2}, None)
    assert read(ended.text(), PLAN, "gaudi-1", ended.up) == ended
    again, step = begin(record, {}, 900.0)
    assert step == "fence" and end(again, "", {"fenced": True}, {}, (), 901.0).seconds == {}
    assert end(record, "", {"fenced": True}, {}, (), 50.0).seconds == {}, "the controller has started anew"
    failed = end(record, "a card is gone", {}, {}, (), 160.0)
    assert (failed.seconds, failed.began) == ({}, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-20], "cannot be read"),
        (lambda text: "[]", "cannot be read"),
        (lambda text: text.replace('"seconds": {}', '"seconds": 7'), "has values that no record has"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "is not of format 1"),
        (lambda text: text.replace(PLAN, "1" * 64), "is of another plan"),
        (lambda text: text.replace('"begun": ""', '"begun": "unfence"'), "has steps in another order"),
    ],
)
def test_a_record_that_is_none_is_refused(change: Callable[[str], str], said: str) -> None:
    record = new(PLAN, "gaudi-1", steps.up((), False))
    with pytest.raises(Refusal, match=f"The record of gaudi-1 {said}"):
        read(change(record.text()), PLAN, "gaudi-1", record.up)


def test_the_first_surprise_stops_all_that_have_not_begun() -> None:
    def at(phase: str, name: str, **more: Any) -> Record:
        return replace(new(PLAN, name, steps.up((), False)), phase=phase, **more)

    batches = [["a"], ["b", "c"]]
    assert may_begin({}, batches, "a") == ""
    assert may_begin({}, batches, "b") == "b does not begin before a is there."
    assert may_begin({"a": at(THERE, "a")}, batches, "c") == ""
    surprise = {"a": at(THERE, "a"), "b": at(RETURNED, "b", reason="health: a card is gone")}
    assert may_begin(surprise, batches, "c") == (
        "c does not begin, as b did not go as planned (health: a card is gone): look at it, and plan again."
    )
    under_way = copy.copy(surprise) | {"c": at(UP, "c", done=("fence",))}
    assert may_begin(under_way, batches, "c") == "", "what is half done is brought to one of its ends"
    assert may_begin({"a": at(STUCK, "a", reason="x")}, batches, "a") == "a waits for a person: x."
    assert may_begin({"a": at(THERE, "a")}, batches[:1], "z") == "z has no steps in the plan."
