"""The program of the node's timer brings all that it imports."""

from __future__ import annotations

import ast
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins/module_utils"


def imported(path: Path, found: set[Path]) -> set[Path]:
    """A file and all files of this collection that it imports."""
    if path in found or not path.is_file():
        return found
    found.add(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for each in (base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)):
                imported(each, found)
    return found


def test_every_import_of_the_program_is_brought_along() -> None:
    tree = ast.parse((ROOT / "roles/node_health/files/gaudi_node_health.py").read_text())
    starts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("engine."):
            base = UTILS.joinpath(*(node.module or "").split(".")[1:])
            starts |= {base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)}
    found: set[Path] = set()
    for path in starts:
        imported(path, found)
    folders = {path.parent for path in found} - {UTILS}
    needed = {str(path.relative_to(UTILS)) for path in found | {folder / "__init__.py" for folder in folders}}
    role = yaml.safe_load((ROOT / "roles/node_health/vars/main.yml").read_text())
    assert role["_node_health_sources"] == sorted(needed)
