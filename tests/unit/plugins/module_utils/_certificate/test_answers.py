"""What nodes and controllers registered: evidence under the inventory's name, and a reason in any other case."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.answers import answers
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.evidence import read
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.judge import assess

SAID: dict[str, Any] = {
    "format": 1, "node": "storage-7", "taken_at": 1.79e9, "board": "HL-325L", "generation": "gaudi3",
    "cards": [{"index": 0, "serial": "AO1"}],
}  # fmt: skip
OAM = {"oam": 4, "serial": "AO1", "firmware": {"key1_revocation": 0}}


def silent(controller: Any) -> str | None:
    found = answers({"gaudi-1": {"evidence": SAID}}, {"gaudi-1": controller})["gaudi-1"]
    return assess(read(found["evidence"])).silent.get("management controller")


def facts(**more: Any) -> dict[str, Any]:
    return {"ansible_facts": {"gaudi_bmc": {"cards": [OAM], "complete": True, "unread": [], **more}}}


def test_the_node_has_the_inventory_s_name() -> None:
    assert answers({"gaudi-1": {"evidence": SAID}}, {})["gaudi-1"]["evidence"]["node"] == "gaudi-1"


@pytest.mark.parametrize(
    ("controller", "why"),
    [
        (facts(), None),
        ({"skipped": True}, "it was not asked"),
        ({"failed": True, "msg": "no route to it"}, "no route to it"),
        (facts(complete=False, unread=["Chassis: HTTP 500"]),
         "it did not give all that it was asked for (Chassis: HTTP 500)"),
        (facts(cards=[{**OAM, "serial": "AO2"}]), "it has no card with the serial number of accel0 (AO1)"),
        (facts(cards=[{**OAM, "firmware": {}}]), "it does not tell which boot keys of OAM_4 are revoked"),
        (facts(cards=[]), "it lists no card"),
        (4, "it was not asked"),
    ],
)  # fmt: skip
def test_a_controller_answers_whole_or_the_reason_is_kept(controller: Any, why: str | None) -> None:
    assert silent(controller) == why


@pytest.mark.parametrize("answer", [None, 4, [], {}, {"evidence": []}, {"evidence": {**SAID, "taken_at": 10**400}}])
def test_what_is_no_evidence_has_a_reason(answer: Any) -> None:
    assert answers({"gaudi-1": answer}, {}) == {"gaudi-1": {"evidence": {}, "why": "it gave no answer"}}


def test_values_of_a_wrong_kind_are_left_out() -> None:
    odd = {**SAID, "driver": 4, "uptime_s": float("inf"), "board": "\x1b[31m", "cards": [{"index": -1, "rows": "x"}, 4]}
    found = answers({"gaudi-1": {"evidence": odd}}, {})["gaudi-1"]["evidence"]
    assert (found["driver"], found["uptime_s"], found["board"]) == (None, None, "\\x1b[31m")
    assert [card["rows"] for card in found["cards"]] == [(), ()]
