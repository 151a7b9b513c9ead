"""The notebooks of examples/ run from nothing, read as documents, and carry no outputs."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.suite.proof import Proof
from tests.walks.markdown import ROOT
from tests.walks.places import DISTRIBUTIONS

FOLDER = ROOT / "examples/notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
PYTHON = ROOT / ".cache/notebooks/bin/python"
PROOF = Proof("notebooks", {"notebooks": NAMES}, sample=["none"])
TEXT = """
Each row is a notebook of [examples/notebooks](../examples/notebooks), run by nbmake from its first cell to its last, on
processors. `cells` is how many have code.
"""


def cells(name: str) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    notebook: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["language_info"]) == (4, {"name": "python"})
    return list(notebook["cells"])


def faults(found: list[dict[str, Any]]) -> list[str]:
    """What keeps cells from being a document."""
    wrong = []
    if not found or found[0]["cell_type"] != "markdown" or not "".join(found[0]["source"]).startswith("# "):
        wrong.append("it does not begin with a title")
    names = [cell.get("id") for cell in found]
    if None in names or len(set(names)) < len(names):
        wrong.append("cells have no names of their own (id)")
    for cell in found:
        if cell["cell_type"] == "code":
            wrong += [f"{cell.get('id')} has outputs"] * bool(cell["outputs"] or cell["execution_count"])
            ast.parse("".join(cell["source"]))
    return wrong


def test_there_are_three() -> None:
    assert NAMES == ["plan_and_cost.ipynb", "read_results.ipynb", "train_and_resume.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_a_document(name: str) -> None:
    assert faults(cells(name)) == []
    kinds = [cell["cell_type"] for cell in cells(name)]
    assert kinds.count("markdown") >= kinds.count("code") - 1, "cells of code are explained"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"cell_type": "code", "source": ["1"], "outputs": [], "execution_count": None}, "does not begin with a title"),
        ({"id": None}, "no names of their own"),
    ],
)
def test_a_notebook_that_is_none_is_found(change: dict[str, Any], fault: str) -> None:
    found = cells(NAMES[0])
    found[0].update(change)
    assert fault in " ".join(faults(found))


def test_an_output_is_found() -> None:
    found = cells(NAMES[0])
    found[1]["execution_count"] = 1
    assert faults(found) == [f"{found[1]['id']} has outputs"]


@pytest.mark.parametrize("name", PROOF.parameters({name: name for name in NAMES}))
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    PROOF.skip_if_held(name)
    if not PYTHON.exists():
        PROOF.cannot_run(name, "its environment is missing (make .cache/notebooks/ready)")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    sources = os.pathsep.join(str(ROOT / each / "src") for each in DISTRIBUTIONS)
    environment = {**os.environ, "PYTHONPATH": sources, "PATH": f"{PYTHON.parent}:{os.environ['PATH']}"}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [str(PYTHON), "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", "--nbmake"]
    done = subprocess.run(
        [*command, "--nbmake-timeout=600", f"examples/notebooks/{name}"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    if done.returncode:
        PROOF.failed(name)
    assert done.returncode == 0, done.stdout[-6000:]
    PROOF.note(name, {"cells": sum(cell["cell_type"] == "code" for cell in cells(name))})
    PROOF.write_table("The notebooks, executed", TEXT, ["cells"])
