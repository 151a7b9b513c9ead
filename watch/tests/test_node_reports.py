"""Reports and passports of nodes, and files that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gaudi3_watch.node_reports import NodeReports, in_order
from gaudi3_watch.view import View

NOW = 1_700_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three nodes: one healthy, one not fit for work, one that was never examined."""
    good = {
        "healthy": True,
        "drains": False,
        "verdicts": [],
        "errors": [],
        "remedy": "none",
        "versions": {"board": "HL-325L", "driver": "1.24"},
    }
    bad = {**good, "healthy": False, "drains": True, "verdicts": ["accel3 port 7 is down"], "remedy": "retry"}
    passport = {"passport": {"node": "gaudi-1", "expires_at": NOW + 86400, "depth": "standard"}, "signature": "x"}
    files = {
        "gaudi-1.report.json": good,
        "gaudi-10.report.json": bad,
        "gaudi-1.passport.json": passport,
        "fleet.json": {"nodes": {"gaudi-10": {"state": "out", "reason": "port 7"}, "gaudi-2": {"state": "in service"}}},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    return tmp_path


def rows(found: View) -> list[list[str]]:
    return [[each if isinstance(each, str) else each["text"] for each in row] for row in found["tables"][0]["rows"]]


def test_nodes_have_their_verdicts_and_passports(folder: Path) -> None:
    found = NodeReports(folder).section(NOW)
    assert rows(found) == [
        ["gaudi-1", "healthy", "\N{EN DASH}", "standard, for 1 d", "HL-325L, 1.24"],
        ["gaudi-2", "not examined", "in service", "none", "\N{EN DASH}"],
        ["gaudi-10", "accel3 port 7 is down (remedy: retry)", "out: port 7", "none", "HL-325L, 1.24"],
    ]
    assert [(each["label"], each["value"]) for each in found["tiles"]] == [
        ("Nodes", "3"),
        ("Not fit for work", "1"),
        ("Passports in date", "1"),
    ]
    assert [row[0] for row in rows(NodeReports(folder).section(NOW, "gaudi-10"))] == ["gaudi-10"]


def test_a_suspect_is_shown_with_the_sentence_of_the_hang(folder: Path) -> None:
    fleet = json.loads((folder / "fleet.json").read_text())
    sentence = "Rank 9 on gaudi-2 did not enter all_reduce 4711; the other 15 ranks wait."
    fleet["nodes"]["gaudi-2"]["suspected"] = {"demo": {"at": NOW, "sentence": sentence}}
    (folder / "fleet.json").write_text(json.dumps(fleet))
    assert rows(NodeReports(folder).section(NOW))[1][2] == (
        f"in service, a suspect until it is tested: job demo: {sentence}"
    )
    for odd in ([], {"demo": 3}, {"demo": {"sentence": 4}}, "x"):
        fleet["nodes"]["gaudi-2"]["suspected"] = odd
        (folder / "fleet.json").write_text(json.dumps(fleet))
        assert rows(NodeReports(folder).section(NOW))[1][2].startswith("in service")


def test_a_passport_that_has_expired_says_so(folder: Path) -> None:
    assert rows(NodeReports(folder).section(NOW + 2 * 86400))[0][3] == "expired 1 d ago"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", '"x"', '{"verdicts": 5}', '{"verdicts": [5], "healthy": 1}', "[" * 9999]
)
def test_a_report_that_is_none_is_said_to_be(folder: Path, content: str) -> None:
    (folder / "gaudi-1.report.json").write_text(content)
    (folder / "gaudi-1.passport.json").write_text(content)
    found = rows(NodeReports(folder).section(NOW))[0]
    assert "report" in found[1] and "not a passport" in found[3]


def test_large_files_links_and_pipes_are_not_read(folder: Path, tmp_path: Path) -> None:
    (folder / "gaudi-1.report.json").write_bytes(b" " * (2**20 + 1))
    assert "longer than" in rows(NodeReports(folder).section(NOW))[0][1]
    (folder / "gaudi-1.report.json").unlink()
    os.mkfifo(folder / "gaudi-1.report.json")
    assert "no regular file" in rows(NodeReports(folder).section(NOW))[0][1]
    (folder / "gaudi-1.report.json").unlink()
    (folder / "gaudi-1.report.json").symlink_to("/etc/hostname")
    assert "cannot be read" in rows(NodeReports(folder).section(NOW))[0][1]


def test_a_folder_without_reports_says_what_to_do(tmp_path: Path) -> None:
    for given in (None, tmp_path, tmp_path / "none"):
        said = NodeReports(given).section(NOW)["empty"]
        assert "health" in said["remedy"] and said["why"]


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["b", "a10", "a9", "10", "a9b", ""], key=in_order) == ["", "10", "a9", "a9b", "a10", "b"]


@pytest.mark.parametrize("ends", ["NaN", "1e999", "9" * 400, "true"])
def test_a_passport_whose_end_is_no_time_is_none(folder: Path, ends: str) -> None:
    (folder / "gaudi-1.passport.json").write_text(f'{{"passport": {{"expires_at": {ends}, "depth": "full"}}}}')
    section = NodeReports(folder).section(NOW)
    assert "not a passport" in rows(section)[0][3]
