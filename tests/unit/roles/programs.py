"""What the programs of roles import of the collection, which the role has to bring along."""

from __future__ import annotations

import ast
from pathlib import Path

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


def sources_of(program: Path) -> list[str]:
    """The files below module_utils that a program needs in its folder `engine`, by name and in order."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "engine":
            base = UTILS.joinpath(*(node.module or "").split(".")[1:])
            for path in (base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)):
                imported(path, found)
    folders = {path.parent for path in found} - {UTILS}
    return sorted(str(path.relative_to(UTILS)) for path in found | {folder / "__init__.py" for folder in folders})
