"""The rehearsal of a plan: on seeded fleets nothing goes wrong, and each fault that is put in is found."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from upgrade_fleet import CARDS, FIRMWARE, NAMES, NEW, OLD, flashed, node

from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import planned, record, standing, steps
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.double import Double
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import MOVE, Wish, make
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.rehearsal import Rehearsal, rehearse
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.state import NodeState

HELD = (NAMES[0],)
FLASHER = "habanalabs-firmware-odm"


def tried(states: dict[str, NodeState], held: tuple[str, ...] = HELD, **wish: Any) -> Rehearsal:
    made = make(states, Wish(NEW, **wish))
    assert made.refusals == ()
    plan = planned.read(made.text())
    return rehearse(plan, planned.digest(made.text()), states, dict.fromkeys(states, held))


def seeded(seed: int) -> Rehearsal:
    """Two to five nodes of two kinds: packages, holds, PyTorch, jobs, cards."""
    of = random.Random(seed)
    kinds = []
    for _kind in range(2):
        names = [FLASHER, *of.sample(["habanalabs-dkms", "habanalabs-thunk", "habanalabs-qual"], of.randint(1, 3))]
        versions: dict[str, Any] = {"packages": dict.fromkeys(names, OLD)}
        if of.random() < 0.5:
            versions |= {"plugin": "1.22.0.740", "torch": "2.7.1"}
        kinds.append((versions, of.choice(["", "pretrain"])))
    firmware = of.choice(["", FIRMWARE])
    states = {}
    for number in range(1, of.randint(2, 5) + 1):
        versions, job = of.choice(kinds)
        states[f"gaudi-{number}"] = node(
            versions=dict(versions), jobs=[job] if job else [], firmware=flashed("1.22.0"), cards=len(CARDS)
        )
    spares = tuple(of.sample(sorted(states), 2))
    share = of.choice([0.1, 0.4])
    return tried(states, tuple(of.sample(NAMES, 2)), jobs=MOVE, spares=spares, share=share, firmware=firmware)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_goes_wrong_on_seeded_fleets(seed: int) -> None:
    found = seeded(seed)
    assert found.problems == ()
    assert {way.end for way in found.ways if not way.fails} == {"there"}
    assert {way.end for way in found.ways if way.fails in ("fence", "packages", "driver")} == {"returned"}
    assert found.cuts > 200 and found.refusals


def test_what_was_tried_of_nodes_that_are_alike() -> None:
    found = tried({"gaudi-1": node(), "gaudi-2": node(), "gaudi-3": node(cards=2)})
    assert found.problems == ()
    assert [way.nodes for way in found.ways if not way.fails] == [("gaudi-1", "gaudi-2"), ("gaudi-3",)]
    one = [way for way in found.ways if way.nodes == ("gaudi-3",)]
    assert [(way.fails, way.end) for way in one] == [
        ("", "there"),
        *((step, "returned") for step in ("fence", "packages", "driver", "health", "passport", "unfence")),
    ]
    assert one[2].back == ("packages", "driver", "health", "passport", "unfence")
    assert found.cuts == sum(way.cuts for way in found.ways) and all(way.cuts > 15 for way in found.ways)
    was = "its kernel was 6.8.0-60-generic and is 6.8.0-60-generic-drifted"
    assert found.refusals == tuple(
        f"{name} is not as it was when the plan was made ({was}): plan again." for name in ("gaudi-1", "gaudi-3")
    )


def test_firmware_goes_card_by_card_and_is_not_flashed_back() -> None:
    found = tried({"gaudi-1": node(firmware=flashed("1.22.0"))}, firmware=FIRMWARE)
    assert found.problems == ()
    ends = {way.fails: (way.end, way.back) for way in found.ways}
    assert [ends[f"firmware {card}"] for card in CARDS] == [("stuck", ())] * 3
    assert (ends["driver"][0], ends["health"], ends["unfence"]) == ("returned", ("stuck", ()), ("stuck", ("fence",)))
    up = next(way for way in found.ways if not way.fails)
    # Of each flash two cuts leave half a card, of which a second one takes the card to be lost.
    assert up.cuts > next(way for way in tried({"gaudi-1": node()}).ways if not way.fails).cuts + 6 * len(CARDS)


steps_back, end, refusals = steps.back, record.end, planned.refusals
#: What is broken, and what the rehearsal then says first.
FAULTS: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "the way back begins in service": (
        steps, "back", lambda begun, way: tuple(each for each in steps_back(begun, way) or () if each != "fence"),
        "gaudi-1, where unfence fails: gaudi-1: it is in service with packages of two releases.",
    ),
    "the way back has no driver": (
        steps, "back", lambda begun, way: tuple(each for each in steps_back(begun, way) or () if each != "driver"),
        "gaudi-1, where driver fails: gaudi-1: it is in service without the driver of its packages.",
    ),
    "the steps of a record are not kept": (
        standing, "end", lambda found, *more: replace(end(found, *more), done=(), begun=""),
        "gaudi-1, on its way up: gaudi-1 comes to no end.",
    ),
    "others begin after a surprise": (
        standing, "may_begin", lambda records, batches, name: "",
        "gaudi-1, where fence fails: gaudi-2 begins after the surprise of gaudi-1.",
    ),
    "a run that continues is held to the old versions": (
        planned, "refusals", lambda plan, states, under_way: refusals(plan, states, {}),
        "gaudi-1, on its way up: the run that should go on was refused: gaudi-1 has been taken out of service (it is "
        "upgraded): give it back, or plan again without it.",
    ),
    "a drifted fleet is taken": (
        planned, "refusals", lambda plan, states, under_way: [],
        "gaudi-1: with another kernel it is not the one that is refused.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", FAULTS)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    where, name, fault, said = FAULTS[which]
    states = {"gaudi-1": node(), "gaudi-2": node()}
    made = make(states, Wish(NEW))
    monkeypatch.setattr(where, name, fault)
    plan = json.loads(made.text())
    assert rehearse(plan, planned.digest(made.text()), states, dict.fromkeys(states, HELD)).problems[0] == said


def test_a_card_that_is_flashed_without_need_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    flash = Double._flash

    def blindly(self: Any, card: str, image: str, fails: bool) -> Any:
        if not self.is_half:
            self._firmware[card] = flashed("1.22.0")[card]
        yield from flash(self, card, image, fails)

    monkeypatch.setattr(Double, "_flash", blindly)
    found = tried({"gaudi-1": node(firmware=flashed("1.22.0"))}, firmware=FIRMWARE).problems
    said = "gaudi-1, on its way up: gaudi-1 after a power cut at instant [0-9]+ flashes a card again that was flashed."
    assert re.fullmatch(said, found[0])
