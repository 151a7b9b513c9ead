"""The page: what a buyer reads, and what a seller's machine cannot write into it."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import page
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.rules import RULES, SECTIONS


def test_both_forms_have_grade_sources_findings_and_who_signed(sheet: Any) -> None:
    sheet.facts["cards"][3]["rows_pending"] = True
    sheet.facts["cards"][0]["counters"]["corrected_ever"] = 12
    found = sheet.certificate
    broken = "accel3 (AM03): rows of its memory wait to be replaced by a reset (B, rule rows-pending;"
    noted = "accel0 (AM00): 12 corrected memory errors in its life (noted, not graded)"
    for text in ("\n".join(page.text(found, "SHA256:abc")), page.html(found, "SHA256:abc")):
        assert broken in text and noted in text and "hl_qual: answered" in text
        assert f"SHA-256 of the file: {found.digest}" in text and "signed by the key SHA256:abc" in text
        assert "management controller: not read on this board, so nothing is known of boot keys" in text
    assert page.text(found)[0] == "gaudi-1: grade B"
    shown = page.html(found)
    assert "NOT SIGNED" in shown and '<div class="grade">B</div>' in shown
    quiet = re.findall("as far as the sources answered: (.*?)[.]<", shown)[0].split(", ")
    headed = [section for section in SECTIONS if f"<h2>{section}</h2>" in shown]
    assert sorted([*headed, *quiet]) == sorted(SECTIONS) and headed == ["Replaced rows", "Memory errors", "Hours"]
    assert all(rule.name in shown for rule in RULES)


def test_a_source_without_an_answer_leaves_no_grade(sheet: Any) -> None:
    sheet.facts["qual"] = []
    shown = page.html(sheet.certificate)
    assert '<div class="grade none">no grade</div>' in shown
    assert "hl_qual: no answer: it was not asked for" in shown


def test_words_of_a_machine_stay_words(sheet: Any) -> None:
    sheet.facts["cards"][3].update(serial="<script>alert(1)</script>", status='"><img src=x>\x1b[31m')
    sheet.facts["node"] = "</title>"
    shown = page.html(sheet.certificate)
    assert "<script" not in shown and "<img" not in shown and "\x1b" not in shown
    assert len(re.findall("</title>", shown)) == 1
    assert "\x1b" not in "\n".join(page.text(sheet.certificate))
