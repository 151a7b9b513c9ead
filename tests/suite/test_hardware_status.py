"""Each open question about hardware names the part of a node's report that answers it, and the page shows both."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import pci
from ansible_collections.gaudi3.scale.plugins.module_utils._release import support_matrix
from gaudi3_doctor import SECTIONS
from gaudi3_scale.config import Config
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


def parts() -> set[str]:
    """What the product has: roles, places of machines, systems, cards, strategies, precisions, ways to run a model."""
    root = hardware_status.ROOT
    release = yaml.safe_load((root / "roles/synapseai/defaults/main.yml").read_text())["synapseai_release"]
    systems = {name for line in support_matrix.LINES for name in line.systems if release in line.releases}
    fields = Config.model_fields["train"].annotation.model_fields  # type: ignore[union-attr]
    return {
        "gaudi_host_plan",  # the preflight of a site
        *(path.name for path in (root / "roles").iterdir()),
        *(path.parent.name for path in (root / "terraform").glob("*/versions.tf")),
        *(name.replace("RedHat", "RHEL") for name in systems),
        *(product.name for product in pci.PRODUCTS.values() if product.name),
        *(get_args(fields["strategy"].annotation)[1:]),
        *(get_args(fields["precision"].annotation)[1:]),
        *(get_args(fields["mode"].annotation)[1:]),
    }


def test_the_page_covers_every_part_of_the_product_and_no_other() -> None:
    covered = {name for row in hardware_status.read()["seen"] for name in row.get("covers", [])}
    assert sorted(parts() - covered) == []
    assert sorted(covered - parts()) == []
    page = hardware_status.page("")
    assert [name for name in covered if f"`{name}`" not in page] == []


def test_the_front_page_leads_to_the_questions() -> None:
    first_screen = (hardware_status.ROOT / "README.md").read_text().splitlines()[:24]
    assert any("docs/understand/hardware-status.md" in line for line in first_screen)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: U2\n", "id: U1\n", "U1 stands twice"),
        ("report: [device_files]", "report: []", "U1: give id"),
        ("    hardware: false\n", "", "Gaudi 3 OAM cards: give part"),
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
    assert "On a Gaudi ran: Gaudi 3 OAM cards. The rest has not." in page
    assert "| 8 x HL-325L, 1.24.1-482 |" in page
