"""Functions of the plugins are called what the field calls them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "plugins").rglob("*.py"))
#: Names that say nothing to somebody who reads a call of them.
VAGUE = {"judge", "caution", "far", "told", "consult", "must", "settled", "bereft", "words", "verdict", "over"}


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT / "plugins")) for path in FILES])
def test_a_function_says_what_it_does(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = {node.name.strip("_") for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert names & VAGUE == set()
