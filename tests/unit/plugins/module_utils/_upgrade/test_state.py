"""What a node is before its upgrade: the same from its answer and from its doctor's report, and where two differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from upgrade_fleet import CARDS, node

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.state import (
    difference,
    fingerprint,
    held_of,
    of_answer,
    of_report,
)

REPORT = Path(__file__).parents[5] / "simulator/tests/reports/gaudi-7.json"
PREBOOT = "Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9"


def report() -> dict[str, Any]:
    """The doctor's report of the node that `upgrade_fleet.node` is."""
    sections: dict[str, Any] = {
        "machine": {
            "kernel": "6.8.0-60-generic",
            "system": {"ID": "ubuntu", "VERSION_ID": "22.04", "PRETTY_NAME": "Ubuntu 22.04 LTS"},
        },
        "modules": {"loaded": {"habanalabs": {"version": "1.22.0-5f8fa9f"}}},
        "packages": {
            "packages": [
                *({"name": name, "version": "1.22.0-740", "state": "installed"} for name in node().versions.packages),
                {"name": "habanalabs-qual", "version": "1.22.0-740", "state": "config-files"},
                {"name": "dkms", "version": "3.0", "state": "installed"},
            ]
        },
        "cards": {"cards": [{"address": each, "device": "0x1060"} for each in CARDS]},
        "firmware": {"sysfs": {each: {"preboot_btl_ver": PREBOOT} for each in CARDS}},
    }
    return {"format": 1, "sections": {name: {"data": data} for name, data in sections.items()}}


def test_a_report_and_an_answer_of_one_node_have_the_same_facts() -> None:
    assert of_report(report()).facts() == node().facts()
    assert of_report(report()).firmware == dict.fromkeys(CARDS, PREBOOT)


def test_a_report_that_is_kept_in_the_checkout_is_read() -> None:
    facts = of_report(json.loads(REPORT.read_text())).facts()
    assert (facts["kernel"], facts["generation"], facts["cards"]) == ("6.8.0-60-generic", "gaudi3", 8)
    assert (facts["driver"], facts["packages"]) == ("1.23.0-2eae87a", {})


def test_what_is_held_back_is_in_a_report() -> None:
    given = report()
    given["sections"]["packages"]["data"]["packages"][1]["wanted"] = "hold"
    given["sections"]["packages"]["data"]["packages"][-2]["wanted"] = "hold"
    assert held_of(given) == ("habanalabs-firmware", "habanalabs-qual") and held_of({"sections": 7}) == ()


@pytest.mark.parametrize("given", [{}, {"format": 2, "sections": {}}, {"format": 1, "sections": []}])
def test_what_is_no_report_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="It is no doctor's report of format 1: give what"):
        of_report(given)


@pytest.mark.parametrize("odd", [[1], {"sections": 7}, "text", None])
def test_odd_parts_of_a_report_are_unknown_and_no_error(odd: Any) -> None:
    given = report()
    given["sections"] = {key: {"data": odd} for key in given["sections"]}
    assert of_report(given).facts() == of_answer({"versions": {}}).facts()


def test_an_answer_is_read_back_as_it_was_written() -> None:
    state = node(
        fence={"by": "person", "reason": "its fan", "jobs": ["eval"]}, jobs=["pretrain"], firmware={CARDS[0]: PREBOOT}
    )
    assert of_answer(state.as_answer()) == state
    assert (state.fence, state.fence_reason, state.fence_jobs) == ("person", "its fan", ("eval",))
    assert node(fence={"by": "person", "jobs": 7}).fence_jobs == ()


def test_a_fence_that_cannot_be_understood_is_a_persons() -> None:
    assert node(fence="yes").fence == "person"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, "no versions"),
        ({"versions": {}, "cards": True}, "has True cards"),
        ({"versions": {}, "jobs": "one"}, "jobs are 'one'"),
        ({"versions": {}, "firmware": ["a"]}, "firmware is"),
    ],
)
def test_an_answer_of_another_form_is_refused(answer: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        of_answer(answer)


def test_each_fact_that_differs_is_named() -> None:
    planned = node().facts()
    assert difference(planned, node().facts()) == ""
    other = node(versions={"packages": {**node().versions.packages, "habanalabs-thunk": "1.22.1-6"}})
    assert difference(planned, other.facts()) == "its package habanalabs-thunk was 1.22.0-740 and is 1.22.1-6"
    nothing = {**planned, "packages": {**planned["packages"], "habanalabs-x": None}}
    assert difference(nothing, planned) == "its package habanalabs-x was not there and is not there"
    assert difference(planned, node(cards=2).facts()) == "its number of cards was 3 and is 2"
    assert difference(planned, node(versions={"driver": ""}).facts()) == "its driver was 1.22.0-5f8fa9f and is unknown"


def test_the_fingerprint_is_of_the_facts_and_of_nothing_else() -> None:
    fleet = {"gaudi-1": node().facts(), "gaudi-2": node().facts()}
    turned = {name: dict(reversed(fleet[name].items())) for name in reversed(fleet)}
    assert fingerprint(fleet) == fingerprint(turned) and len(fingerprint(fleet)) == 64
    assert fingerprint({**fleet, "gaudi-2": node(jobs=["a"], fence={"by": "person"}).facts()}) == fingerprint(fleet)
    assert fingerprint({**fleet, "gaudi-2": node(versions={"kernel": "6.8.0-61-generic"}).facts()}) != fingerprint(
        fleet
    )
