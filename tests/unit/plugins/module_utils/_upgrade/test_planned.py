"""A plan's file: what does not hold together is refused, and so is a fleet that is another one by now."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from upgrade_fleet import FIRMWARE, NAMES, NEW, OLD, flashed, node

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import Wish, make
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.planned import digest, read, refusals, wanted

STATES: dict[str, Any] = {"gaudi-1": node(), "gaudi-2": node()}


def text(**wish: Any) -> str:
    return make(STATES, Wish(NEW, **wish)).text()


def test_what_was_written_is_read() -> None:
    found = read(text())
    assert (found["release"], found["batches"]) == (NEW, [["gaudi-1"], ["gaudi-2"]])
    assert digest(text()) != digest(text() + " ")
    flash = make({"gaudi-1": node(firmware=flashed("1.22.0"))}, Wish(NEW, firmware=FIRMWARE)).text()
    assert read(flash)["nodes"]["gaudi-1"]["up"][3] == "firmware 0000:19:00.0"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plan: plan.update(schema=2), "is not of format 1"),
        (lambda plan: plan.pop("fleet"), "has no fleet, nodes and batches"),
        (lambda plan: plan["fleet"]["gaudi-1"].update(kernel="5"), "fingerprint is not that of the fleet in it"),
        (lambda plan: plan["fleet"]["gaudi-1"].pop("kernel"), "fleet is not described by system, kernel"),
        (lambda plan: plan.update(firmware="$(reboot)"), "firmware is none that a card can have"),
        (lambda plan: plan.update(jobs="kill"), "neither stopped nor move"),
        (lambda plan: plan["batches"].append(["gaudi-1"]), "batches are not of its nodes, each once"),
        (lambda plan: plan["batches"].append(7), "batches or refusals that are no lists"),
        (lambda plan: plan["nodes"]["gaudi-1"]["up"].insert(1, "rm -rf /"), "steps of gaudi-1 are none"),
        (lambda plan: plan["nodes"]["gaudi-1"]["up"].pop(0), "steps of gaudi-1 are none"),
        (lambda plan: plan["nodes"]["gaudi-1"]["packages"].update(a=["1", "2"]), "steps of gaudi-1 are none"),
        (lambda plan: plan["nodes"]["gaudi-1"]["packages"].popitem(), "steps of gaudi-1 are none"),
        (lambda plan: plan["nodes"]["gaudi-1"].update(before="1.22.0-74"), "steps of gaudi-1 are none"),
        (lambda plan: plan["nodes"]["gaudi-1"].pop("before"), "steps of gaudi-1 are none"),
        (lambda plan: plan["nodes"]["gaudi-1"]["back"].clear(), "steps of gaudi-1 are none"),
    ],
)
def test_a_plan_that_does_not_hold_together_is_refused(change: Callable[[dict[str, Any]], object], said: str) -> None:
    plan = json.loads(text())
    change(plan)
    with pytest.raises(Refusal, match=said):
        read(json.dumps(plan))


def test_a_plan_that_flashes_two_nodes_at_once_is_refused() -> None:
    old = {name: node(firmware=flashed("1.22.0")) for name in ("gaudi-1", "gaudi-2", "gaudi-3")}
    plan = make(old, Wish(NEW, firmware=FIRMWARE)).as_plain()
    plan["batches"] = [["gaudi-1"], ["gaudi-2", "gaudi-3"]]
    with pytest.raises(Refusal, match="The plan would flash cards of more than one node at a time"):
        read(json.dumps(plan))


def test_what_is_no_plan_is_refused() -> None:
    for each in ("", "[1", "[]", "[" * 100_000):
        with pytest.raises(Refusal, match="make it again with `gaudi3-deploy upgrade plan`"):
            read(each)


def test_the_fleet_of_the_plan_is_not_refused() -> None:
    assert refusals(read(text()), STATES, {}) == []


def test_a_fleet_that_has_drifted_is_refused_by_node_and_fact() -> None:
    plan = read(text())
    drifted = node(versions={"packages": {**dict.fromkeys(NAMES, OLD), NAMES[1]: "1.22.1-6"}})
    assert refusals(plan, {**STATES, "gaudi-2": drifted}, {}) == [
        "gaudi-2 is not as it was when the plan was made (its package habanalabs-firmware was 1.22.0-740 and is "
        "1.22.1-6): plan again."
    ]
    assert refusals(plan, {"gaudi-1": node(), "gaudi-2": None, "gaudi-3": node()}, {}) == [
        "gaudi-3 is not in the plan: plan again with all nodes.",
        "gaudi-2 is in the plan and does not answer: repair it, or plan again without it.",
    ]
    fenced, busy = node(fence={"by": "person", "reason": "its fan"}), node(jobs=["pretrain"])
    assert refusals(plan, {"gaudi-1": fenced, "gaudi-2": busy}, {}) == [
        "gaudi-1 has been taken out of service (its fan): give it back, or plan again without it.",
        "gaudi-2 runs pretrain, which the plan takes to be stopped: stop it first.",
    ]
    assert refusals(read(text(jobs="move", spares=("gaudi-1",))), {**STATES, "gaudi-2": busy}, {}) == []


def test_a_node_that_is_under_way_may_have_other_versions_and_nothing_else() -> None:
    plan = read(text())
    half = node(versions={"packages": {NAMES[0]: NEW}, "driver": ""}, fence={"by": "person"})
    assert refusals(plan, {**STATES, "gaudi-1": half}, {"gaudi-1": True}) == []
    other = node(versions={"packages": {NAMES[0]: NEW}, "kernel": "6.8.0-61-generic"})
    assert (
        "its kernel was 6.8.0-60-generic and is 6.8.0-61-generic"
        in (refusals(plan, {**STATES, "gaudi-1": other}, {"gaudi-1": True})[0])
    )


def test_what_each_way_leads_to() -> None:
    plan = read(text())
    there, back = wanted(plan, "gaudi-1", False), wanted(plan, "gaudi-1", True, ["habanalabs-dkms"])
    assert (there["release"], there["packages"], there["exact"]) == (NEW, dict.fromkeys(NAMES, NEW), False)
    old = dict.fromkeys(NAMES, OLD)
    assert back == {"release": OLD, "firmware": "", "packages": old, "exact": True, "held": ["habanalabs-dkms"]}
