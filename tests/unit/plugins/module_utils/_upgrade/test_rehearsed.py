"""What a plan says of its rehearsal, and minutes: only of somebody who has measured them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from upgrade_fleet import FIRMWARE, NEW, flashed, node

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import planned, rehearsed
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import Wish, make
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.rehearsal import Rehearsal, Way

STATES = {"gaudi-1": node(), "gaudi-2": node(), "gaudi-3": node()}
PLAN: dict[str, Any] = json.loads(make(STATES, Wish(NEW, share=0.7)).text())
DONE = Rehearsal(
    (Way(("gaudi-1",), "", "there", (), 30), Way(("gaudi-1",), "fence", "returned", ("unfence",), 5)), (), ()
)
EVERY = rehearsed.given(["fence=1", "packages=8.5", "driver=2", "health=25", "passport=1", "unfence=0.5"])


def test_a_plan_with_its_rehearsal_is_read_and_another_one_is_not() -> None:
    about = rehearsed.section(PLAN, DONE, {}, "2026-11-29T12:00:00+00:00")
    text = rehearsed.text(PLAN, about)
    found = planned.read(text)
    assert (found["rehearsal"]["cuts"], found["rehearsal"]["order"]) == (35, [["gaudi-1"], ["gaudi-2", "gaudi-3"]])
    assert found["rehearsal"]["ways"][1] == {
        "nodes": ["gaudi-1"], "fails": "fence", "end": "returned", "back": ["unfence"], "cuts": 5,
    }  # fmt: skip
    assert planned.unrehearsed(found) == planned.unrehearsed(PLAN) and planned.digest(text) != planned.digest("")
    found["made"] = "later"
    with pytest.raises(Refusal, match="not the one that was rehearsed: `gaudi3-deploy upgrade rehearse` it again"):
        planned.read(json.dumps(found))


def test_a_rehearsal_that_found_something_is_none() -> None:
    with pytest.raises(Refusal, match="gaudi-1 comes to no end"):
        rehearsed.section(PLAN, replace(DONE, problems=("gaudi-1 comes to no end.",)), {}, "")


def test_a_plan_that_was_not_rehearsed_is_refused_unless_somebody_says_so() -> None:
    assert rehearsed.refusals(PLAN, False) == [
        "The plan was not rehearsed: do that with `gaudi3-deploy upgrade rehearse`, or set "
        "upgrade_unrehearsed_allowed=true."
    ]
    assert rehearsed.refusals(PLAN, True) == rehearsed.refusals({**PLAN, "rehearsal": {}}, False) == []
    assert rehearsed.refusals({**PLAN, "nodes": {}}, False) == [], "nothing is done"


def test_minutes_are_unknown_until_every_step_has_some() -> None:
    found = rehearsed.durations(PLAN, {})
    assert found["unknown"] == ["fence", "packages", "driver", "health", "passport", "unfence"]
    assert (found["steps"], found["fleet"], set(found["nodes"].values())) == ({}, None, {None})
    found = rehearsed.durations(PLAN, {name: EVERY[name] for name in EVERY if name != "health"})
    assert (found["unknown"], found["fleet"]) == (["health"], None)
    found = rehearsed.durations(PLAN, EVERY)
    assert (found["nodes"]["gaudi-1"], found["fleet"]) == (38.0, 76.0), "two batches, one after the other"
    assert found["steps"]["packages"] == {"minutes": 8.5, "source": "given"}


def test_each_card_takes_the_minutes_of_one() -> None:
    plan = make({"gaudi-1": node(firmware=flashed("1.22.0"))}, Wish(NEW, firmware=FIRMWARE)).as_plain()
    known = {**EVERY, **rehearsed.given(["firmware=10"])}
    assert rehearsed.durations(plan, known)["fleet"] == 38.0 + 3 * 10


def test_minutes_of_records_are_the_longest_that_were_measured() -> None:
    records = [{"seconds": {"health": 600, "firmware 0000:19:00.0": 90.0}}, {"seconds": {"health": 1230}}, {}]
    odd: list[dict[str, Any]] = [{"seconds": 7}, {"seconds": {"health": "9999", "rm": 5, "driver": -1, "fence": True}}]
    found = rehearsed.measured([*records, *odd])
    assert {name: (each.minutes, each.source) for name, each in found.items()} == {
        "health": (20.5, "the longest of 2 in records"),
        "firmware": (1.5, "the longest of 1 in records"),
    }


@pytest.mark.parametrize(
    "word", ["health", "health=", "health=0", "health=-5", "health=99999", "reboot=5", "health=1e3"]
)
def test_minutes_that_are_none_are_refused(word: str) -> None:
    with pytest.raises(Refusal, match=f"The minutes are {word}: give STEP=MINUTES, such as health=25, with a STEP of"):
        rehearsed.given([word])
