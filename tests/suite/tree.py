"""The tree of `plugins/`, `roles/` and `tests/` in CONTRIBUTING.md, from the first sentence of each file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- tree: written by `make tree` -->\n", "<!-- end of tree -->\n"


def tracked(folder: str) -> list[str]:
    """Paths below a folder that git knows, in order, without those that are gone."""
    done = subprocess.run(["git", "ls-files", folder], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in sorted(done.stdout.split()) if (ROOT / path).exists()]


def said(path: Path) -> str:
    """What a Python file says of itself first, a module by its documentation."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["DOCUMENTATION"]:
            documentation = yaml.safe_load(ast.literal_eval(node.value))
            description = documentation["short_description"]
            return f"{description}."
    return " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())


def lines() -> list[str]:
    """One line for each Python file of the plugins and tests, and for each role."""
    found = ["### plugins/", ""]
    found += [f"- `{path}`: {said(ROOT / path)}" for path in tracked("plugins") if _speaks(path)]
    found += ["", "### roles/", ""]
    for path in tracked("roles"):
        if path.endswith("/meta/main.yml"):
            description = yaml.safe_load((ROOT / path).read_text())["galaxy_info"]["description"]
            found.append(f"- `{path.removesuffix('/meta/main.yml')}`: {description}.")
    found += ["", "### tests/", ""]
    found += [f"- `{path}`: {said(ROOT / path)}" for path in tracked("tests") if _speaks(path)]
    return found


def _speaks(path: str) -> bool:
    return path.endswith(".py") and "/stand_ins/" not in path and bool(said(ROOT / path))


def page() -> str:
    """CONTRIBUTING.md with the tree as it is."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(lines()) + "\n\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit()
