"""Each report in the folder `reports` is a regression test: its twin has the verdicts that it has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gaudi3_simulator.twin import folder, replay, reports

REPORTS = sorted(path for path in Path(__file__).with_name("reports").iterdir() if path.suffix != ".md")


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.name)
def test_report_and_twin_have_the_same_verdicts(path: Path) -> None:
    files = folder.make(reports.open_report(path), "gaudi-1")
    twin, state = json.loads(files[folder.TWIN]), json.loads(files[folder.STATE])
    rows = replay.replay(twin, state)
    assert [row.text() for row in replay.differences(rows)] == []
    assert len(rows) == len(twin["verdicts"])


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.name)
def test_a_kept_report_has_no_serial_number_and_no_hardware_address(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"(?:Serial Number|AIP UUID)\s*:\s*(?!<number>)\S+", text) == []
    assert re.findall(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", text) == []


def test_the_sample_is_what_its_readme_says() -> None:
    files = folder.make(reports.open_report(REPORTS[0]), "gaudi-7")
    twin = json.loads(files[folder.TWIN])
    assert twin["faults"] == [
        {"kind": "ecc-uncorrected", "card": 3, "count": 4711},
        {"kind": "port-down", "card": 5, "port": 7},
    ]
    assert twin["not_simulated"] == []
