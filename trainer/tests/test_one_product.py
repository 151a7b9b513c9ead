"""The package is one product: the job is made of the public classes, names are given once, and imports go one way."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from conftest import SOURCE

PACKAGE = SOURCE / "gaudi3_scale"


def name_of(path: Path) -> str:
    """The module's, with dots."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {name_of(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
PACKAGES = {name_of(path) for path in PACKAGE.rglob("__init__.py")}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that is run, functions included; what only a type checker reads is not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from (part for each in child.orelse for part in (each, *statements(each)))
            continue
        yield child
        yield from statements(child)


def imported(name: str) -> set[str]:
    """The modules of the package that a module imports, anywhere in it."""
    found = set()
    for node in statements(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found |= {f"{module}.{a.name}" if f"{module}.{a.name}" in TREES else module for a in node.names}
    return found & TREES.keys() - {name}


def cycles(edges: dict[str, set[str]]) -> list[frozenset[str]]:
    """The groups of modules of which each can reach the others (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[frozenset[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[len(stack) - len(group) :]
            if len(group) > 1:
                groups.append(frozenset(group))

    for node in edges:
        if node not in index:
            visit(node)
    return groups


def classes() -> dict[str, list[str]]:
    """Where each class that is no module's own is defined."""
    found = defaultdict(list)
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def test_no_module_imports_one_that_imports_it() -> None:
    assert [sorted(group) for group in cycles({name: imported(name) for name in TREES})] == []


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [frozenset("abc")]


def reached(name: str) -> set[str]:
    """What a module imports, and what that imports."""
    found: set[str] = set()
    left = [name]
    while left:
        for other in imported(left.pop()) - found:
            found.add(other)
            left.append(other)
    return found


def test_the_job_is_made_of_the_public_classes() -> None:
    used = reached("gaudi3_scale.fit")
    for name, home in {
        "GaudiTrainer": "gaudi3_scale.integration.trainer",
        "GaudiCheckpoint": "gaudi3_scale.callbacks.gaudi_checkpoint",
        "InterruptionCallback": "gaudi3_scale.callbacks.interruption_callback",
        "ThroughputCallback": "gaudi3_scale.callbacks.throughput_callback",
        "StatusCallback": "gaudi3_scale.callbacks.status_callback",
    }.items():
        assert classes()[name] == [home] and home in used
    calls = {
        ast.unparse(node.func)
        for name in ("gaudi3_scale.fit", "gaudi3_scale.job_trainer", "gaudi3_scale.callbacks.step_order")
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Call)
    }
    assert {"GaudiTrainer", "GaudiCheckpoint.of_session", "InterruptionCallback.of_job"} <= calls
    assert {"ThroughputCallback.of_job", "StatusCallback.of_job"} <= calls


def test_there_is_one_trainer_and_one_set_of_callbacks() -> None:
    bases = {
        f"{name}.{node.name}": {ast.unparse(base) for base in node.bases}
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    callbacks = {name for name, its in bases.items() if "pl.Callback" in its}
    assert {name for name in callbacks if ".callbacks." not in name} == set()
    assert [name for name, its in bases.items() if "pl.Trainer" in its] == [
        "gaudi3_scale.integration.trainer.GaudiTrainer"
    ]
    made = [name for name, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("pl.Trainer", "Trainer")]  # fmt: skip
    assert made == []


PROGRAMS = re.compile(r"\bgaudi3_scale\.(doctor|benchmark)\b")


def test_a_name_is_given_once() -> None:
    """The sections of the configuration are called as what they configure; doctor and benchmark are programs."""
    modules = defaultdict(list)
    for name in TREES.keys() - {"gaudi3_scale"}:
        if name.split(".")[1] not in ("doctor", "benchmark", "config") and not name.endswith(".__main__"):
            modules[name.rpartition(".")[2]].append(name)
    twice = {last: sorted(names) for last, names in modules.items() if len(names) > 1}
    # Two that are worked on elsewhere.
    assert twice == {
        "job": ["gaudi3_scale.data.job", "gaudi3_scale.job"],
        "optimizer": ["gaudi3_scale.memory.optimizer", "gaudi3_scale.optimizer"],
    }
    shared = {
        name: homes for name, homes in classes().items() if len(homes) > 1 and not PROGRAMS.search(" ".join(homes))
    }
    assert shared == {}


def test_the_parts_of_a_job_are_given_its_run_and_not_ten_of_its_parts() -> None:
    """At most five parameters; the settings of GaudiCheckpoint are those of the configuration, by name."""
    long = []
    for name in TREES:
        if not name.startswith(("gaudi3_scale.callbacks.", "gaudi3_scale.fit", "gaudi3_scale.job_state")):
            continue
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("on_"):
                given = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")]
                if len(given) > 5:
                    long.append(f"{name}.{node.name}: {given[0]}")
    assert long == ["gaudi3_scale.callbacks.gaudi_checkpoint.__init__: dirpath"]
