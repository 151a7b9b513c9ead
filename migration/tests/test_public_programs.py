"""The public example programs of optimum-habana, below CONTRACT_SOURCES, rewritten: each compiles and reports."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from gaudi3_migration import difference, migrate

SOURCES = os.environ.get("CONTRACT_SOURCES", "")
EXAMPLES = Path(SOURCES or "/nowhere") / "huggingface/optimum-habana/examples"
PROGRAMS = sorted(EXAMPLES.rglob("*.py"))

pytestmark = pytest.mark.proof


@pytest.mark.skipif(not PROGRAMS, reason="CONTRACT_SOURCES has no huggingface/optimum-habana")
def test_there_are_as_many_as_were_counted() -> None:
    assert len(PROGRAMS) == 85


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_a_public_program(path: Path, tmp_path: Path) -> None:
    files = migrate(path)
    for each in files:
        tree = ast.parse(each.after)
        imports = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imports |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        kept = [name for name in imports if name.startswith("optimum.habana")]
        assert [name for name in kept if not any(name in found.what for found in each.left)] == []
        (tmp_path / each.path.name).write_text(each.after)
    assert difference(migrate(tmp_path / path.name)) == ""
