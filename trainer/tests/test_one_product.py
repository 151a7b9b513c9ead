"""The package is one product: the job is made of the public classes, and names are given once."""

from __future__ import annotations

import ast
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


def classes() -> dict[str, list[str]]:
    """Where each class that is no module's own is defined."""
    found = defaultdict(list)
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


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
    used = reached("gaudi3_scale.job.fit")
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
        for name in ("gaudi3_scale.job.fit", "gaudi3_scale.job.trainer", "gaudi3_scale.job.step_order")
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
    # What tries a batch is beside the batch.
    tried = "gaudi3_scale.batch.rehearsal_callback.RehearsalCallback"
    assert {name for name in callbacks if ".callbacks." not in name} == {tried}
    assert [name for name, its in bases.items() if "pl.Trainer" in its] == [
        "gaudi3_scale.integration.trainer.GaudiTrainer"
    ]
    made = [name for name, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("pl.Trainer", "Trainer")]  # fmt: skip
    assert made == []


def changed_from_outside(tree: ast.AST) -> list[str]:
    """Assignments to the `config` of something else than the object itself."""
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for target in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    found = [ast.unparse(target) for target in targets if isinstance(target, ast.Attribute) and target.attr == "config"]
    return [name for name in found if name != "self.config"]


def test_what_was_asked_for_stays_as_it_is() -> None:
    """What is trained with is in the run's plan, which is replaced as a whole."""
    assert {name: found for name, tree in TREES.items() if (found := changed_from_outside(tree))} == {}
    assert changed_from_outside(ast.parse("job, run.config = run.config, scout")) == ["run.config"]
    assert changed_from_outside(ast.parse("run.config = other\nself.config = one")) == ["run.config"]


def test_a_name_is_given_once() -> None:
    """Sections of the configuration and parts of a job are called as what they are about."""
    modules = defaultdict(list)
    for name in TREES.keys() - {"gaudi3_scale"}:
        if name.split(".")[1] not in ("config", "job") and not name.endswith(".__main__"):
            modules[name.rpartition(".")[2]].append(name)
    twice = {last: sorted(names) for last, names in modules.items() if len(names) > 1}
    assert twice == {}
    assert {name: homes for name, homes in classes().items() if len(homes) > 1} == {}


def test_the_parts_of_a_job_are_given_its_run_and_not_ten_of_its_parts() -> None:
    """At most five parameters; the settings of GaudiCheckpoint are those of the configuration, by name."""
    long = []
    for name in TREES:
        if not name.startswith(("gaudi3_scale.callbacks.", "gaudi3_scale.job.fit", "gaudi3_scale.job.contents")):
            continue
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("on_"):
                given = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")]
                if len(given) > 5:
                    long.append(f"{name}.{node.name}: {given[0]}")
    assert long == ["gaudi3_scale.callbacks.gaudi_checkpoint.__init__: dirpath"]
