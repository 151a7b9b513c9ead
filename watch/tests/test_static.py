"""The files of the page: uPlot's are those of its package, and no text becomes HTML."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from gaudi3_watch.pages import STATIC

FOLDER = Path(__file__).resolve().parents[1] / "src/gaudi3_watch/static"
OURS = sorted(path for path in FOLDER.iterdir() if not path.name.startswith("uplot"))
#: What reads a text as HTML or as a program.
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|srcdoc"
    r"|javascript:|\bon[a-z]+="
)


def test_the_files_of_uplot_are_as_its_package_has_them() -> None:
    about = json.loads((FOLDER / "uplot.json").read_text())
    assert set(about["files"]) == {path.name for path in FOLDER.glob("uplot*")} - {"uplot.json"}
    for name, file in about["files"].items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == file["sha256"], name
    assert f"({about['name']} {about['version']}, {about['license']})".lower() == "(uplot 1.6.32, mit)"
    assert "MIT License" in (FOLDER / "uplot-license.txt").read_text()


def test_every_file_is_served_or_is_about_one() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(STATIC) | {"uplot.json", "uplot-license.txt"}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_text_becomes_a_program(path: Path) -> None:
    assert SINKS.findall(path.read_text()) == []


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_nothing_is_asked_of_other_machines(path: Path) -> None:
    addresses = set(re.findall(r"https?://[^\s\"')]+", path.read_text()))
    assert addresses - {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"} == set()


@pytest.mark.parametrize("line", ["a.innerHTML = b", "eval(b)", '<a onclick="b">', "new Function(b)"])
def test_a_sink_is_found(line: str) -> None:
    assert SINKS.search(line)
