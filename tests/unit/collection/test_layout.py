"""Promises that hold for the collection as a whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(path for path in (ROOT / "plugins/modules").glob("*.py") if not path.name.startswith("_"))
TREE = ROOT / "collections/ansible_collections/gaudi3/scale"
NAMES = [path.stem for path in MODULES]


def documentation(path: Path, name: str) -> Any:
    """The YAML in a module's DOCUMENTATION, EXAMPLES or RETURN."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and [target.id for target in node.targets if isinstance(target, ast.Name)] == [
            name
        ]:
            return yaml.safe_load(ast.literal_eval(node.value))
    raise AssertionError(f"{path.name} has no {name}")


def returns_facts(path: Path) -> bool:
    """Whether some exit_json of the module has ansible_facts."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "exit_json"
        and any(keyword.arg == "ansible_facts" for keyword in node.keywords)
        for node in ast.walk(ast.parse(path.read_text()))
    )


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_facts_modules_return_facts_and_no_other_does(path: Path) -> None:
    assert returns_facts(path) is path.stem.endswith("_facts")
    assert ("ansible_facts" in (documentation(path, "RETURN") or {})) is path.stem.endswith("_facts")


def undescribed(keys: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, key in keys.items():
        if not key.get("description") or "type" not in key:
            found.append(prefix + name)
        found += undescribed(key.get("contains", {}), f"{prefix}{name}.")
    return found


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_every_returned_key_is_described(path: Path) -> None:
    assert undescribed(documentation(path, "RETURN") or {}) == []


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_no_value_has_a_name_that_decides_the_result(path: Path) -> None:
    """A list called skipped makes Ansible call the task skipped, and leaves out the value."""
    assert not {"failed", "skipped", "unreachable", "invocation"} & set(documentation(path, "RETURN") or {})


def fragment_of(name: str) -> Any:
    """The YAML of a documentation fragment of the collection."""
    path = ROOT / "plugins/doc_fragments" / f"{name.rpartition('.')[2]}.py"
    fragment = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    text = next(node for node in fragment.body if isinstance(node, ast.Assign))
    return yaml.safe_load(ast.literal_eval(text.value))


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_check_and_diff_mode_are_declared(path: Path) -> None:
    said = documentation(path, "DOCUMENTATION")
    attributes = dict(said.get("attributes") or {})
    for fragment in said.get("extends_documentation_fragment") or ():
        attributes.update(fragment_of(fragment).get("attributes") or {})
    assert {"check_mode", "diff_mode"} <= set(attributes)
    for name in ("check_mode", "diff_mode"):
        assert attributes[name]["support"] in ("full", "partial", "none")


def test_the_action_group_has_every_module() -> None:
    runtime = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())
    assert sorted(runtime["action_groups"]["gaudi3"]) == NAMES


def test_the_licence_exception_is_noted_for_every_module() -> None:
    lines = (ROOT / "tests/sanity/ignore-2.19.txt").read_text().splitlines()
    noted = sorted(line.split()[0] for line in lines if line.endswith(" validate-modules:missing-gplv3-license"))
    others = [
        f"plugins/{kind}/{path.name}"
        for kind in ("callback", "inventory", "lookup")
        for path in (ROOT / "plugins" / kind).glob("*.py")
    ]
    assert noted == sorted(others) + [f"plugins/modules/{name}.py" for name in NAMES]


def test_the_collection_tree_is_links_only() -> None:
    entries = {entry.name: entry for entry in TREE.iterdir()}
    assert set(entries) == {"galaxy.yml", "meta", "playbooks", "plugins", "roles", "trainer"}
    for name, entry in entries.items():
        assert entry.is_symlink(), f"{name} is a copy: git checkout -- collections brings the link back"
        assert str(entry.readlink()) == f"../../../../{name}"
        assert entry.resolve() == ROOT / name


def test_nothing_was_added_in_a_later_version_than_this() -> None:
    now = tuple(map(int, yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"].split(".")))
    added = {
        path.relative_to(ROOT): version
        for folder in ("plugins", "roles")
        for path in (ROOT / folder).rglob("*.[py][ym]*")
        if path.suffix in (".py", ".yml")
        for version in re.findall(r"version_added: ([\d.]+)", path.read_text())
        if tuple(map(int, version.split("."))) > now
    }
    assert not added


_SET_FILTER = re.compile(r"\| *(?:union|intersect|(?:symmetric_)?difference)\((?:[^()]|\([^()]*\))*\)([^}]{0,12})")


def test_filters_of_sets_are_only_counted() -> None:
    """Their order is another in each run: a file that is written from it changes, and so does a message."""
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("playbooks", "roles")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".yml", ".j2"}
        for match in _SET_FILTER.finditer(" ".join(path.read_text().split()))
        if not match[1].lstrip().startswith(("| length", "| sort"))
    }
    assert not found, "use select('in', ...) or reject('in', ...)"


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_omitted_options_are_called_so(path: Path) -> None:
    assert not re.search(r"Left out|when left out", path.read_text()), "say: If omitted, ..."
