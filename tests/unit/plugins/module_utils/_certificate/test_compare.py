"""Two certificates of one machine: every figure that can get worse does so once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.compare import compare
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

CARD = "accel3 (AM03)"


def test_a_machine_that_stayed_as_it_was_says_nothing(sheet: Any, later: Any) -> None:
    found = compare(sheet.certificate, later.certificate)
    assert (found.worse, found.odd, found.changed, found.earlier, found.later) == ((), (), (), "A", "A")


@pytest.mark.parametrize(
    ("change", "worse"),
    [
        (lambda card: card["counters"].update(corrected_ever=9),
         f"{CARD}: corrected memory errors in its life were 0 and are 9"),
        (lambda card: card["counters"].update(throttled_thermal=2),
         f"{CARD}: times slowed down for heat were 0 and are 2"),
        (lambda card: card["rows"].append({"address": "0x1", "cause": "Double Bit ECC"}),
         f"{CARD}: replaced rows (cause Double Bit ECC) were 0 and are 1"),
        (lambda card: card["ports"][0].update(restores=5), f"{CARD} port 7: restored links were 0 and are 5"),
        (lambda card: card["controller"]["keys"].update(key1_revocation=1),
         f"{CARD}: key1 was not revoked and is (its controller says 1)"),
        (lambda card: card["controller"]["memory"].update(rows_replaced_for_good=3),
         f"{CARD}: rows replaced for good was 0 and is 3"),
        (lambda card: card["counters"].update(uncorrected_ever=1),
         f"{CARD}: uncorrected memory errors in its life were 0 and are 1"),
    ],
)  # fmt: skip
def test_what_got_worse_is_named_in_either_order(sheet: Any, later: Any, change: Any, worse: str) -> None:
    change(later.facts["cards"][3])
    for pair in ((sheet, later), (later, sheet)):
        found = compare(*(each.certificate for each in pair))
        assert (found.worse, found.odd, found.changed) == ((worse,), (), ())


def test_a_rule_that_broke_lowers_the_grade(sheet: Any, later: Any) -> None:
    later.facts["cards"][3]["rows_pending"] = True
    found = compare(sheet.certificate, later.certificate)
    assert found.worse == (
        "the grade was A and is B",
        f"{CARD}: rows of its memory wait to be replaced by a reset (rule rows-pending)",
    )


def test_a_source_that_fell_silent_is_named(sheet: Any, later: Any) -> None:
    later.facts["steps"] = []
    found = compare(sheet.certificate, later.certificate)
    assert (found.later, found.worse) == (
        "none",
        ("training step answered and does not any more: it was not asked for",),
    )


def test_what_only_grows_and_shrank_is_odd_and_what_a_boot_resets_is_not(sheet: Any, later: Any) -> None:
    sheet.facts["cards"][3]["counters"].update(corrected=4, corrected_ever=9)
    sheet.facts["cards"][3]["rows"] = [{"address": "0x1", "cause": "Single Bit ECC"}]
    found = compare(sheet.certificate, later.certificate)
    assert found.worse == ()
    assert found.odd == (
        f"{CARD}: corrected memory errors in its life were 9 and are 0, which only grow",
        f"{CARD}: replaced rows (cause Single Bit ECC) were 1 and are 0, and a row stays replaced",
    )
    assert found.changed == (f"{CARD}: corrected memory errors since the driver was loaded were 4 and are 0",)


def test_a_card_that_was_swapped_and_another_chassis_are_named(sheet: Any, later: Any) -> None:
    later.facts["cards"][3].update(serial="AM99", uuid="U99")
    later.facts.update(machine_serial="M2", driver="1.24.1")
    found = compare(sheet.certificate, later.certificate)
    assert found.worse == ("cards that are gone: AM03",)
    assert found.odd == ("cards that were not there: AM99", "the cards were in the machine M1 and are in M2")
    assert found.changed == ("the driver was 1.23.0-2eae87a and is 1.24.1",)


def test_two_machines_are_refused(sheet: Any, later: Any) -> None:
    for card in later.facts["cards"]:
        card["serial"] = "AX" + card["serial"]
    with pytest.raises(Refusal, match=r"These are two machines: no card of gaudi-1 .* Give two of one machine"):
        compare(sheet.certificate, later.certificate)


def test_cards_that_nobody_sees_are_no_other_machine(sheet: Any, later: Any) -> None:
    later.facts["cards"] = []
    with pytest.raises(
        Refusal, match=r"^Nothing tells whether these are of one machine: a certificate of gaudi-1 has no"
    ):
        compare(sheet.certificate, later.certificate)
