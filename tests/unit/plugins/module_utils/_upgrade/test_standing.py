"""Where a fleet stands: answers that cannot be read, the next step of a node, and what it leads to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from upgrade_fleet import FIRMWARE, NAMES, NEW, OLD, flashed, node

from ansible_collections.gaudi3.scale.plugins.module_utils._health.passport import lacks
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import Wish, make
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.record import BACK, Record, new
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.standing import (
    flashes,
    next_of,
    problems,
    typed,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.standing import unfit as refused_of

STATES: dict[str, Any] = {"gaudi-1": node(), "gaudi-2": node()}
TEXT = make(STATES, Wish(NEW)).text()
PLAN: dict[str, Any] = json.loads(TEXT)
NONE = ("", "", ())


def answer(**more: Any) -> dict[str, Any]:
    """What a node of the plan answers."""
    return {**node().as_answer(), "held": [NAMES[0]], **more}


def begun(step: str, *done: str, **more: Any) -> dict[str, Record]:
    record = new("d", "gaudi-1", PLAN["nodes"]["gaudi-1"]["up"])
    return {"gaudi-1": replace(record, begun=step, done=done, **more)}


def test_the_fleet_of_the_plan_has_no_problems() -> None:
    assert problems(PLAN, {}, {"gaudi-1": answer(), "gaudi-2": answer()}) == []


def test_answers_that_are_none_are_their_nodes_alone() -> None:
    assert problems(PLAN, {}, {"gaudi-1": {}, "gaudi-2": answer(cards="many")}) == [
        "gaudi-2 cannot be judged: It has 'many' cards: ask it again.",
        "gaudi-1 is in the plan and does not answer: repair it, or plan again without it.",
    ]


@pytest.mark.parametrize("odd", [7, [1], {"versions": 7, "held": []}, {"versions": {}, "held": 5}])
def test_an_odd_answer_is_typed_or_unread(odd: Any) -> None:
    assert set(typed(odd)) <= {"unread"}
    assert typed(answer()) == answer() and typed(typed(answer())) == answer()


def report(check: str, action: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    """What an examination returns of a node with one fault."""
    fault = {"component": "accel1", "kind": "node fault", "severity": severity, "action": action, "message": "it burns"}
    return {"verdicts": [{**fault, "check": check}], "suspects": [], "errors": [], "versions": {"board": "x"}, **more}


def unfit(plan: dict[str, Any], records: dict[str, Record], examinations: dict[str, Any]) -> list[str]:
    return refused_of(plan, records, examinations, lacks)


def test_a_node_that_is_not_in_order_does_not_begin() -> None:
    name = next(iter(PLAN["nodes"]))
    seen = report("card-status", "reset")
    said = f"{name} is not in order now: it burns; repair it first."
    assert unfit(PLAN, {}, {name: seen, "stranger": seen}) == [said]
    assert unfit(PLAN, {}, {name: {**seen, "verdicts": []}}) == [] == unfit(PLAN, {}, {})
    assert unfit(PLAN, {name: new("", name, PLAN["nodes"][name]["up"])}, {name: seen}) == []
    for odd in ({}, 7, {"msg": "no answer."}):
        assert unfit(PLAN, {}, {name: odd}) == [f"{name} is not in order now: no answer; repair it first."]


def test_what_the_upgrade_itself_ends_does_not_keep_a_node_from_it() -> None:
    watched = report("throttled-power", "watch", "warning")
    built, loaded = report("driver-built", "configure"), report("firmware-loaded", "reload")
    for seen in (watched, built, loaded):
        assert unfit(PLAN, {}, {"gaudi-1": seen}) == []
        assert unfit(PLAN, {}, {"gaudi-1": {**seen, "versions": {}}}) != [], "no card was read"
    mixed = report("firmware-flashed", "configure")
    assert unfit(PLAN, {}, {"gaudi-1": mixed}) != []
    flashing = make({"gaudi-1": node(firmware=flashed("1.22.0"))}, Wish(NEW, firmware=FIRMWARE)).as_plain()
    assert unfit(flashing, {}, {"gaudi-1": mixed}) == []


def test_a_plan_that_flashes_is_for_who_allows_it() -> None:
    assert flashes(PLAN, False) == []
    asked = make({"gaudi-1": node(firmware=flashed("1.22.0"))}, Wish(NEW, firmware=FIRMWARE))
    assert flashes(asked.as_plain(), True) == []
    assert flashes(asked.as_plain(), False) == [
        "The plan flashes cards of gaudi-1, from which there is no automatic way back: set "
        "upgrade_flash_allowed=true in a service window, or plan without --firmware."
    ]


def test_the_card_that_is_flashed_is_named_with_its_firmware() -> None:
    plan = make({"gaudi-1": node(firmware=flashed("1.22.0"))}, Wish(NEW, firmware=FIRMWARE)).as_plain()
    record = replace(new("d", "gaudi-1", plan["nodes"]["gaudi-1"]["up"]), begun="driver", done=("fence", "packages"))
    shown = answer(firmware=flashed("1.22.0"))
    shown["versions"]["driver"] = "1.23.0-2eae87a"
    found, asked = next_of(plan, "d", {"gaudi-1": record}, "gaudi-1", shown, ("driver", "", ()))
    assert found is not None and found.begun == "firmware 0000:19:00.0"
    assert (asked["step"], asked["card"], asked["firmware"]) == ("firmware 0000:19:00.0", "0000:19:00.0", FIRMWARE)


def test_the_first_step_is_recorded_before_it_is_carried_out() -> None:
    record, told = next_of(PLAN, "d", {}, "gaudi-1", answer(), NONE)
    assert record is not None and record.begun == "fence" and record.plan == "d"
    assert (told["step"], told["again"], told["phase"], told["release"]) == ("fence", False, "up", NEW)
    record, told = next_of(PLAN, "d", {}, "gaudi-2", answer(), NONE)
    assert record is None and told["reason"] == "gaudi-2 does not begin before gaudi-1 is there."


def test_a_step_that_was_cut_off_comes_again() -> None:
    record, told = next_of(PLAN, "d", begun("packages", "fence"), "gaudi-1", answer(), NONE)
    assert record is not None and (told["step"], told["again"]) == ("packages", True)


def test_a_step_that_failed_leads_back_to_what_was_there() -> None:
    records = begun("packages", "fence", held=(NAMES[0],))
    half = answer()
    half["versions"]["packages"] = {**dict.fromkeys(NAMES, NEW), "habanalabs-qual": NEW}
    record, told = next_of(PLAN, "d", records, "gaudi-1", half, ("packages", "no space left", ()))
    assert record is not None and (record.phase, record.reason) == (BACK, "packages: no space left")
    assert (told["step"], told["release"], told["downgrade"]) == ("packages", OLD, True)
    assert (told["surplus"], told["unhold"]) == (["habanalabs-qual"], list(NAMES[1:]))


def test_a_node_that_no_longer_answers_has_failed_its_step() -> None:
    record, told = next_of(PLAN, "d", begun("driver", "fence", "packages"), "gaudi-1", {}, ("driver", "", ()))
    assert record is not None and "driver: The node does not say what it is" in record.reason and told["phase"] == BACK
    with pytest.raises(Refusal, match="The node does not say what it is"):
        next_of(PLAN, "d", {}, "gaudi-1", {}, NONE)


def test_two_runs_beside_each_other_are_refused() -> None:
    with pytest.raises(Refusal, match="gaudi-1 has not begun fence: another run"):
        next_of(PLAN, "d", begun("driver", "fence", "packages"), "gaudi-1", answer(), ("fence", "", ()))
    with pytest.raises(Refusal, match="gaudi-9 has no steps in the plan"):
        next_of(PLAN, "d", {}, "gaudi-9", answer(), NONE)


def test_jobs_that_left_are_told_until_the_end() -> None:
    fenced = answer(fence={"by": "person"})
    _record, told = next_of(PLAN, "d", begun("fence"), "gaudi-1", fenced, ("fence", "", ["pretrain"]))
    assert told["jobs"] == ["pretrain"] and told["step"] == "packages"
