"""Each open question about hardware names the part of a node's report that answers it, and the page shows both."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_scale.doctor import SECTIONS
from tests.suite import hardware_status

ROWS = hardware_status.questions(hardware_status.read())
# That the page is what the data say is a case of test_strictness.py, as `make strictness` writes it.


def test_every_question_has_its_number() -> None:
    assert sorted(int(row["id"][1:]) for row in ROWS) == list(range(1, len(ROWS) + 1))


def test_every_question_names_sections_that_a_report_has() -> None:
    keys = {section.key for section in SECTIONS}
    assert {name for row in ROWS for name in row["report"]} <= keys


def test_every_section_of_the_cards_answers_a_question() -> None:
    named = {name for row in ROWS for name in row["report"]}
    assert [section.key for section in SECTIONS if section.on_cards and section.key not in named] == []


def test_the_front_page_leads_to_the_questions() -> None:
    first_screen = (hardware_status.ROOT / "README.md").read_text().splitlines()[:24]
    assert any("docs/hardware-status.md" in line for line in first_screen)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: U2\n", "id: U1\n", "U1 stands twice"),
        ("report: [device_files]", "report: []", "U1: give id"),
        ("    hardware: false\n", "", "Drivers and packages on Ubuntu: give part"),
    ],
)
def test_wrong_data_are_refused(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = hardware_status.SOURCE.read_text()
    assert old in text
    (tmp_path / "status.yml").write_text(text.replace(old, new, 1))
    monkeypatch.setattr(hardware_status, "SOURCE", tmp_path / "status.yml")
    with pytest.raises(ValueError, match=message):
        hardware_status.read()


def test_a_part_that_ran_on_hardware_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hardware_status.NEVER in hardware_status.page("")
    text = hardware_status.SOURCE.read_text().replace("hardware: false", "hardware: 8 x HL-325L, 1.24.1-482", 1)
    (tmp_path / "status.yml").write_text(text)
    monkeypatch.setattr(hardware_status, "SOURCE", tmp_path / "status.yml")
    page = hardware_status.page("")
    assert "On a Gaudi ran: Drivers and packages on Ubuntu. The rest has not." in page
    assert "| 8 x HL-325L, 1.24.1-482 |" in page
