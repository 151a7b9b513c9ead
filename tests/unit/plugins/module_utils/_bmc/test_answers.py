"""What was registered of controllers, in a line for each: whatever it is."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.filter.bmc_lines import bmc_lines
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.answers import facts_of, lines

NOT_ASKED = "its controller was not asked"


def answer(**facts: object) -> dict[str, object]:
    return {"changed": False, "ansible_facts": {"gaudi_bmc": facts}}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (answer(card_count=8, said=[]), "8 cards, nothing to say"),
        (answer(card_count=8, said=["OAM_3: a", "OAM_4: b"]), "OAM_3: a; OAM_4: b"),
        (answer(card_count=8, said=["\x1b[2J", 5]), r"\x1b[2J"),
        ({"failed": True, "msg": "The management controller\nis away."}, r"The management controller\nis away."),
        (answer(card_count="8", said=["x"]), NOT_ASKED), ({"msg": 5}, NOT_ASKED), ({}, NOT_ASKED), (None, NOT_ASKED),
        ({"ansible_facts": []}, NOT_ASKED),
    ],
)  # fmt: skip
def test_each_answer_is_a_line(given: object, line: str) -> None:
    assert lines({"gaudi-1": given}) == [f"gaudi-1: {line}"]


def test_machines_are_in_order_and_the_filter_takes_nothing_else() -> None:
    given = {"gaudi-2": {}, "gaudi-1": answer(card_count=8, said=[])}
    assert bmc_lines(given) == ["gaudi-1: 8 cards, nothing to say", f"gaudi-2: {NOT_ASKED}"]
    with pytest.raises(Exception, match="by the names of machines"):
        bmc_lines([given])


@pytest.mark.parametrize("given", [None, [], {"ansible_facts": 5}, {"ansible_facts": {"gaudi_bmc": [1]}}])
def test_what_is_no_answer_has_no_facts(given: object) -> None:
    assert facts_of(given) == {}
