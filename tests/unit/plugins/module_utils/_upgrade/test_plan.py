"""A fleet's plan: order, steps, packages before and after, refusals, and a file that is the same twice."""

from __future__ import annotations

from typing import Any

import pytest
from upgrade_fleet import CARDS, FIRMWARE, NAMES, NEW, OLD, flashed, node

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import MOVE, Plan, Wish, make


def fleet(number: int, **states: Any) -> dict[str, Any]:
    """Nodes gaudi-1 to gaudi-N, some of them other ones."""
    return {f"gaudi-{each}": states.get(f"gaudi_{each}", node()) for each in range(1, number + 1)}


def plan(number: int = 3, asked: Any = None, **states: Any) -> Plan:
    return make(fleet(number, **states), asked or Wish(NEW))


def test_a_canary_alone_and_then_batches() -> None:
    found = plan(12, Wish("1.23.0", share=0.25))
    assert found.release == NEW and found.refusals == ()
    assert [len(each) for each in found.batches] == [1, 3, 3, 3, 2]
    assert found.batches[0] == ("gaudi-1",)


def test_firmware_is_flashed_on_one_node_at_a_time() -> None:
    old = {f"gaudi_{number}": node(firmware=flashed("1.22.0")) for number in range(1, 5)}
    assert [len(each) for each in plan(4, Wish(NEW, share=1.0, firmware=FIRMWARE), **old).batches] == [1, 1, 1, 1]


def test_firmware_needs_the_package_that_flashes() -> None:
    bare = {name: OLD for name in NAMES if not name.endswith("-odm")}
    states = {"gaudi_1": node(firmware=flashed("1.22.0"), versions={"packages": bare})}
    assert plan(1, Wish(NEW, firmware=FIRMWARE), **states).refusals == (
        "gaudi-1: It has no package habanalabs-firmware-odm, which firmware is flashed with: install it first.",
    )


def test_spares_go_first_and_nodes_with_jobs_last() -> None:
    states = {"gaudi_1": node(jobs=["a"]), "gaudi_2": node(jobs=["a"])}
    found = plan(4, Wish(NEW, spares=("gaudi-4",), jobs=MOVE), **states)
    assert found.batches == (("gaudi-4",), ("gaudi-3",), ("gaudi-1",), ("gaudi-2",)) and found.refusals == ()
    assert plan(3, Wish(NEW, canary="gaudi-2")).batches[0] == ("gaudi-2",)


def test_steps_packages_and_the_way_back_of_a_node() -> None:
    way = plan(1).nodes["gaudi-1"]
    assert way.up == ("fence", "packages", "driver", "health", "passport", "unfence")
    assert way.back == ("packages", "driver", "health", "passport", "unfence")
    assert way.packages == dict.fromkeys(NAMES, (OLD, NEW)) and (way.before, way.boots) == (OLD, 0)


def test_pytorch_follows_where_the_node_has_one() -> None:
    way = plan(1, gaudi_1=node(versions={"plugin": "1.22.0.740"})).nodes["gaudi-1"]
    assert way.up == ("fence", "packages", "driver", "pytorch", "health", "passport", "unfence")
    assert way.back == ("packages", "driver", "pytorch", "health", "passport", "unfence")


def test_firmware_only_if_asked_for_and_one_card_at_a_time() -> None:
    way = plan(1, Wish(NEW, firmware=FIRMWARE), gaudi_1=node(firmware=flashed("1.22.0"))).nodes["gaudi-1"]
    assert way.up[3:6] == tuple(f"firmware {each}" for each in CARDS)
    assert "once a card is flashed there is no automatic way back" in way.cautions
    some = {**flashed("1.22.0"), CARDS[1]: flashed("1.23.0")[CARDS[1]]}
    assert plan(1, Wish(NEW, firmware=FIRMWARE), gaudi_1=node(firmware=some)).nodes["gaudi-1"].up[3:6:2] == (
        f"firmware {CARDS[0]}",
        "health",
    )
    said = plan(1, Wish(NEW, firmware=FIRMWARE)).refusals
    assert said == ("gaudi-1: The firmware of its cards is not known one by one: give its doctor's report.",)


def test_a_node_of_rpm_keeps_the_suffix_of_its_packages() -> None:
    red = {"system": "RHEL 9.4", "kernel": "5.14.0-427.el9_4.x86_64", "packages": {"habanalabs": f"{OLD}.el9"}}
    assert plan(1, gaudi_1=node(versions=red)).nodes["gaudi-1"].packages == {"habanalabs": (f"{OLD}.el9", f"{NEW}.el9")}


def test_a_node_that_has_the_release_has_nothing_to_do_and_is_held_to_its_state() -> None:
    there = node(versions={"driver": "1.23.0-2eae87a", "packages": dict.fromkeys(NAMES, NEW)})
    found = plan(2, gaudi_1=there)
    assert (found.there, list(found.nodes), set(found.fleet)) == (("gaudi-1",), ["gaudi-2"], {"gaudi-1", "gaudi-2"})
    wrong = node(versions={"driver": "1.23.0-2eae87a", "packages": dict.fromkeys(NAMES, NEW), "plugin": "1.22.0.740"})
    assert plan(1, gaudi_1=wrong).nodes["gaudi-1"].up[3] == "pytorch", "PyTorch alone has to follow"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (node(fence={"by": "person", "reason": "its fan"}), "It is out of service already (its fan): heal it and give"),
        (node(cards=0), "It shows no card, so that nothing could be tested after it: look at it, and let it report"),
        (node(versions={"driver": ""}), "It has no driver or no packages of the vendor: install them with"),
        (
            node(versions={"packages": {NAMES[0]: OLD, NAMES[1]: "1.22.1-6"}}),
            "Its packages are of 2 releases (1.22.0-740, 1.22.1-6), so there is no way back to one: bring them in step",
        ),
        (node(versions={"driver": "1.21.0-555"}), "Its driver is 1.21.0-555 and its packages are 1.22.0-740: load"),
        (
            node(versions={"packages": {NAMES[0]: "1.24.1-482"}, "driver": "1.24.1-b336d5e"}),
            "It has 1.24.1-482, which is newer than 1.23.0-695: allow a downgrade to go back.",
        ),
        (node(versions={"packages": {NAMES[0]: "9.9.9-1"}, "driver": "9.9.9"}), "Its release 9.9.9-1 is in no matrix"),
        (node(versions={"iommu": "DMA-FQ"}), "Boot with intel_iommu=on iommu=pt first, as "),
    ],
)
def test_what_is_refused_of_a_node_is_one_sentence(state: Any, said: str) -> None:
    found = plan(2, gaudi_1=state)
    assert len(found.refusals) == 1 and found.refusals[0].startswith(f"gaudi-1: {said}")
    assert found.refusals[0].endswith(".") and list(found.nodes) == ["gaudi-2"]


def test_cards_of_no_one_generation_are_said_as_no_release_can_be_judged_for_them() -> None:
    (said,) = plan(1, gaudi_1=node(versions={"generation": ""})).nodes["gaudi-1"].cautions
    assert said == "its cards are of no one known generation, so nothing says that the release drives them"
    assert plan(1).nodes["gaudi-1"].cautions == ()


def test_a_system_that_the_release_is_not_for_comes_first() -> None:
    red = {"system": "RHEL 9.4", "kernel": "5.14.0-427.el9_4.x86_64", "packages": {"habanalabs": NEW}}
    state = node(versions={**red, "driver": "1.23.0-2eae87a"})
    found = make({"gaudi-1": state}, Wish("1.24.1"))
    assert found.refusals[0].startswith("gaudi-1: Upgrade RHEL 9.4 to RHEL 9.6, and boot it first, as 1.24.1-482 goes")


def test_going_back_has_to_be_allowed() -> None:
    state = node(versions={"packages": {NAMES[0]: NEW}, "driver": "1.23.0-2eae87a"})
    way = make({"gaudi-1": state}, Wish(OLD, downgrade=True)).nodes["gaudi-1"]
    assert way.packages == {NAMES[0]: (NEW, OLD)}


def test_jobs_that_run_are_refused_unless_they_may_move_and_there_are_spares_for_a_batch() -> None:
    busy = {"gaudi_1": node(jobs=["pretrain"]), "gaudi_2": node(jobs=["pretrain"])}
    assert plan(3, **busy).refusals == (
        "Job pretrain runs on gaudi-1, gaudi-2, and all nodes of a job have to be on one release: stop it, or plan "
        "with jobs that move, which nothing confirms on hardware.",
    )
    asked = Wish(NEW, spares=("gaudi-3",), share=0.7, jobs=MOVE)
    assert plan(3, asked, **busy).refusals == (
        "Batches of 2 would take more nodes from the jobs than the 1 spares replace: name more spares, or make batches "
        "smaller.",
    )
    assert plan(3, Wish(NEW, spares=("gaudi-3",), jobs=MOVE), **busy).refusals == ()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Wish("2.0.0"), "Release 2.0.0 is in no matrix: give one of"),
        (Wish(NEW, firmware="1.23.0 (x)"), "The firmware is 1.23.0 .x.: give it as a card says it"),
        (Wish(NEW, share=0), "The share of a batch is 0: give more than 0"),
        (Wish(NEW, spares=("gaudi-9",)), "gaudi-9 is not among the nodes: give one of gaudi-1"),
        (Wish(NEW, canary="gaudi-9"), "gaudi-9 is not among the nodes"),
    ],
)
def test_a_wish_that_cannot_be_one_is_refused(asked: Wish, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        plan(3, asked)


def test_no_nodes_are_no_fleet() -> None:
    with pytest.raises(Refusal, match="There are no nodes to plan for"):
        make({}, Wish(NEW))


def test_the_file_is_the_same_for_the_same_fleet() -> None:
    assert plan(3).text() == plan(3).text()
    assert plan(3).as_plain()["nodes"]["gaudi-1"]["minutes"] is None, "no source has them"
