"""The file of a certificate: the same content has the same bytes, and a grade that was written over is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import document
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.evidence import read
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def test_what_was_written_is_read_again(sheet: Any) -> None:
    sheet.facts["cards"][0]["rows"] = [{"address": "0x40", "cause": "Single Bit ECC"}]
    found = document.load(sheet.text, "x")
    assert found.evidence == read(sheet.facts) and document.write(found.evidence) == sheet.text
    assert (found.judgement.grade, len(found.digest)) == ("A", 64)


def test_names_in_a_foreign_certificate_reach_no_terminal(sheet: Any) -> None:
    sheet.facts["cards"][0]["firmware"] = {"\x1b[2Jboot": "1.0"}
    sheet.facts["cards"][0]["controller"]["keys"] = {"a\n0_revocation": False}
    card = read(sheet.facts).cards[0]
    assert card.controller is not None
    assert (dict(card.firmware), dict(card.controller.keys)) == (
        {"\\x1b[2Jboot": "1.0"},
        {"a\\n0_revocation": False},
    )


def test_times_alone_make_no_other_certificate(sheet: Any, later: Any) -> None:
    later.facts["uptime_s"] = 9.0
    assert document.is_same(sheet.text, read(later.facts))
    later.facts["cards"][0]["counters"]["corrected"] = 1
    assert not document.is_same(sheet.text, read(later.facts))
    assert not document.is_same("{", read(later.facts))


def test_a_grade_that_was_written_over_is_refused(sheet: Any) -> None:
    sheet.facts["cards"][3]["rows_pending"] = True
    whole = json.loads(sheet.text)
    assert whole["judgement"]["grade"] == "B"
    whole["judgement"]["grade"] = "A"
    with pytest.raises(Refusal, match="x says grade A, and its evidence comes to B"):
        document.load(json.dumps(whole), "x")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"certificate": {"format": 2}}', '{"certificate": 1}'])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match=r"is no (evidence of a )?certificate"):
        document.load(text, "x")
