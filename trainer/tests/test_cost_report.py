"""Reports of cost: the same numbers in every form, and errors that say what to do."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.cost import Comparison, CostAnalyzer
from gaudi3_scale.cost.document import sentences
from gaudi3_scale.errors import ConfigError, TrainerError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cost" / "inputs.yml"


@pytest.fixture(scope="module")
def analyzer() -> CostAnalyzer:
    made = CostAnalyzer(EXAMPLE)
    made.compare_training_cost()
    return made


@pytest.fixture(scope="module")
def found(analyzer: CostAnalyzer) -> Comparison:
    return analyzer.compare_training_cost()


def test_the_csv_has_every_result_and_every_input_with_its_source(
    analyzer: CostAnalyzer, found: Comparison, tmp_path: Path
) -> None:
    text = analyzer.generate_report(tmp_path / "cost.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    for each in found.estimates:
        mine = {row["quantity"]: row for row in rows if row["offer"] == each.offer}
        assert float(mine["total"]["low"]) == each.total.low and float(mine["total"]["high"]) == each.total.high
        assert sum(float(mine[name]["low"]) for name in each.components) == pytest.approx(each.total.low)
        assert mine["total"]["unit"] == "USD"
        inputs = [row for name, row in mine.items() if name.startswith("input ")]
        assert len(inputs) > 10 and all(row["source"] and row["date"] == "2026-11-23" for row in inputs)


def test_the_pdf_and_the_html_say_what_the_text_says(analyzer: CostAnalyzer, found: Comparison, tmp_path: Path) -> None:
    pdf = analyzer.generate_report(str(tmp_path / "cost_analysis.pdf")).read_bytes()
    assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type /Page\b", pdf)) == 4
    assert b"CreationDate" not in pdf  # the same bytes for the same inputs
    html = analyzer.generate_report(tmp_path / "cost.html").read_text()
    text = analyzer.generate_report(tmp_path / "cost.txt").read_text()
    for sentence in sentences(found):
        assert sentence in text and sentence.replace("'", "&#x27;") in html
    assert html.count("data:image/png;base64,") == 2 and "<script" not in html and "http" not in html
    for each in found.estimates:
        assert each.total.text() in text and each.total.text() in html
    assert not list(tmp_path.glob(".*"))


def test_the_json_has_the_break_even_curves(analyzer: CostAnalyzer, found: Comparison, tmp_path: Path) -> None:
    whole = json.loads(analyzer.generate_report(tmp_path / "cost.json").read_text())
    assert [offer["offer"] for offer in whole["offers"]] == ["gaudi3", "gaudi3-owned", "h100"]
    assert whole["cheapest"] is None  # the example favours nobody
    assert whole["break_even"]["offer"] == "gaudi3" and set(whole["break_even"]["against"]) == {"gaudi3-owned", "h100"}


def test_the_picture_of_the_breakdown(analyzer: CostAnalyzer, tmp_path: Path) -> None:
    figure = analyzer.plot_tco_breakdown(tmp_path / "tco.png")
    picture = (tmp_path / "tco.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and zlib.crc32(picture[12:29]) == int.from_bytes(picture[29:33], "big")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gaudi3", "gaudi3-owned", "h100"]
    assert axes.get_xlabel() == "million USD"
    assert axes.get_title(loc="left").endswith("\nThese are example numbers, nobody's offer and nobody's measurement.")


def test_a_file_of_another_kind_and_one_that_cannot_be_written(analyzer: CostAnalyzer, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"ends with '\.docx': give a file that ends with one of \.pdf, \.html, \.csv"
    ):
        analyzer.generate_report(tmp_path / "cost.docx")
    with pytest.raises(TrainerError, match="cannot be written"):
        analyzer.generate_report(tmp_path / "missing" / "cost.csv")


def test_without_matplotlib_a_picture_says_what_to_install(
    analyzer: CostAnalyzer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(TrainerError, match=r"pip install 'matplotlib>=3.10', or write the report as \.csv"):
        analyzer.generate_report(tmp_path / "cost.pdf")
    analyzer.generate_report(tmp_path / "cost.csv")


def test_the_command(tmp_path: Path) -> None:
    report = tmp_path / "cost.csv"
    ran = CliRunner().invoke(app, ["cost", str(EXAMPLE), "--report", str(report), "--tokens", "2T"])
    assert ran.exit_code == 0 and report.exists()
    assert ran.output.startswith("Cost of training a model (llama-3.1-70b) on 2T tokens\n")
    assert "depends on values within the inputs' ranges" in ran.output
    alone = CliRunner().invoke(app, ["cost", str(EXAMPLE), "--platform", "h100", "--format", "json"])
    assert [offer["offer"] for offer in json.loads(alone.output)["offers"]] == ["h100"]
    wrong = CliRunner().invoke(app, ["cost", str(EXAMPLE), "--report", "cost.docx"])
    assert isinstance(wrong.exception, ConfigError) and str(wrong.exception).startswith("--report is cost.docx: give a")
