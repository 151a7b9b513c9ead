"""What runs on nodes runs on Python 3.9: RHEL 9 has no newer one as its own."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path

import ansible
import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted([*(ROOT / "plugins/modules").glob("*.py"), *(ROOT / "plugins/module_utils").rglob("*.py")])
NAMES = [str(path.relative_to(ROOT)) for path in SOURCES]
#: What came later than 3.9, by module.
LATER = {
    "itertools": {"pairwise", "batched"},
    "datetime": {"UTC"},
    "enum": {"StrEnum"},
    "typing": {"ParamSpec", "TypeAlias", "TypeGuard", "Self", "assert_never", "override"},
    "contextlib": {"chdir", "aclosing"},
    "hashlib": {"file_digest"},
}
IMPORT = """
import importlib, json, sys
failed = {}
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""


def later(tree: ast.Module) -> list[str]:
    """Names and arguments that Python 3.9 does not have."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [name.name for name in node.names if name.name in LATER.get(node.module, ())]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += [node.attr] if node.attr in LATER.get(node.value.id, ()) else []
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            given = {keyword.arg for keyword in node.keywords}
            found += ["zip(strict)"] if called == "zip" and "strict" in given else []
            found += ["dataclass(slots)"] if called.endswith("dataclass") and given & {"slots", "kw_only"} else []
    return found


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_its_syntax_and_names_are_those_of_3_9(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    assert later(tree) == []
    if tree.body and not path.name.startswith("__init__"):
        imported = {name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
        assert "annotations" in imported, "without it 'X | None' is evaluated, which 3.9 cannot"


@pytest.mark.parametrize(
    "text",
    [
        "from itertools import pairwise",
        "import datetime\ndatetime.UTC",
        "zip(a, b, strict=True)",
        "dataclass(slots=True)",
    ],
)
def test_what_came_later_is_found(text: str) -> None:
    assert later(ast.parse(text))


def old_python() -> Path | None:
    """A Python 3.9 that pyenv has, or the one on the path."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*sorted(pyenv.glob("versions/3.9.*/bin/python3.9")), Path("/usr/bin/python3.9")]
    return next((path for path in found if path.exists()), None)


def test_all_of_it_is_imported_by_a_real_3_9(tmp_path: Path) -> None:
    python = old_python()
    if python is None:
        pytest.skip("no Python 3.9 is installed here: the syntax was looked at alone")
    (tmp_path / "ansible").symlink_to(Path(ansible.__file__).parent)
    (tmp_path / "ansible_collections").symlink_to(ROOT / "collections/ansible_collections")
    names = ["ansible_collections.gaudi3.scale." + name[: -len(".py")].replace("/", ".") for name in NAMES]
    names = [name.removesuffix(".__init__") for name in names]
    given = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(python), "-S", "-c", IMPORT],
        env=given,
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}
