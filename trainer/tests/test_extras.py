"""What is said where an optional package is missing can be typed as it is."""

from __future__ import annotations

import doctest
import re
import subprocess
import tomllib
from pathlib import Path

from gaudi3_scale import extras

ROOT = Path(__file__).resolve().parents[2]


def test_the_packages_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "trainer" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {name: tuple(wanted) for name, wanted in project["optional-dependencies"].items()} == extras.PACKAGES
    assert doctest.testmod(extras).failed == 0


def test_no_text_installs_the_products_own_packages_from_an_index() -> None:
    """They are on none, and another distribution could have the name."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if re.search(r"\.(md|py|yml|j2|sh|tf)$", name) or name == "Makefile"]
    assert "docs/use/cost.md" in names and "trainer/src/gaudi3_scale/extras.py" in names
    own = re.compile(r"pip install(?: --?[\w-]+)* [\"']?gaudi3-")
    at_fault = [name for name in names if own.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))]
    assert at_fault == []


def test_the_documents_name_extras_that_there_are() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*ROOT.glob("docs/**/*.md"), ROOT / "trainer" / "README.md")]
    named = {name for text in texts for each in re.findall(r"\./trainer\[([\w,]+)\]", text) for name in each.split(",")}
    assert named >= {"data", "report"} and named <= extras.PACKAGES.keys()
