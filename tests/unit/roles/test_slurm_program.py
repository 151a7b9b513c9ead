"""The program of role slurm brings all that it imports."""

from __future__ import annotations

import ast
from pathlib import Path

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import shipped, slurm

from .test_node_health import ROOT, UTILS, imported


def test_every_import_of_the_program_is_brought_along() -> None:
    starts = set()
    for node in ast.walk(ast.parse((ROOT / "roles/slurm/files/gaudi_slurm.py").read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("engine."):
            base = UTILS.joinpath(*(node.module or "").split(".")[1:])
            starts |= {base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)}
    found: set[Path] = set()
    for path in starts:
        imported(path, found)
    folders = {path.parent for path in found} - {UTILS}
    needed = {str(path.relative_to(UTILS)) for path in found | {folder / "__init__.py" for folder in folders}}
    assert needed <= {*shipped.health_sources(), *slurm.SOURCES}
