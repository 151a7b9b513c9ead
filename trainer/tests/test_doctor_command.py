"""`gaudi3-train doctor`: its options, and the report that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gaudi3_doctor import report
from gaudi3_doctor.host import Result
from gaudi3_doctor.sections import Section
from gaudi3_scale.cli import app


def test_the_command_writes_its_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report, "SECTIONS", (Section("cards", "cards", lambda host, options: Result({"cards": []})),))
    monkeypatch.setattr(report, "on_cards", lambda host, options, log: iter(()))
    path = tmp_path / "report.json"
    result = CliRunner().invoke(app, ["doctor", "--json", str(path)])
    assert result.exit_code == 0 and "The whole report" in result.output
    assert json.loads(path.read_text())["sections"]["cards"]["state"] == "fine"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--cards", "--consent", "reboot"], "give kill-holder, lost-peer, part-of-node, translated-iommu"),
        (["--consent", "kill-holder"], "give --cards too"),
        (["--json", "/nowhere/report.json"], "whose folder does not exist"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["doctor", *options])
    assert sentence in str(result.exception)
