"""Internals of torch and Lightning: one file touches them, each is there as it is used, and nothing shadows another."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from conftest import ROOT, SOURCE

from gaudi3_scale import internals
from gaudi3_scale.internals import Internal

OURS = (SOURCE / "gaudi3_scale", ROOT / "benchmark-tool" / "src" / "gaudi3_benchmark")
"""Doctor examines other people's installations, and is not one of them."""
LIBRARIES = ("torch", "lightning", "pytorch_lightning")
OTHERS = {
    "_exit": "os._exit, which Python documents",
    "_run_exitfuncs": "Python's atexit",
    "_fingerprint": "of datasets",
    "_apply_gate": "of transformers",
    "_asdict": "of Python's named tuples",
    "_attn_implementation": "of transformers",
    "_can_set_attn_implementation": "of transformers",
    "_init_weights": "of transformers",
}
"""Names with an underscore that are neither ours nor torch's or Lightning's."""
FORMATS = ("checkpoint/description.py", "checkpoint/hyperparameters.py")
"""They read names in files that torch has written, which nothing is imported by."""


def private(name: str) -> bool:
    """Has this name one underscore in front?"""
    return name.startswith("_") and not name.startswith("__") and len(name) > 1


def files() -> list[Path]:
    """All of them but the file of the exceptions."""
    return [path for folder in OURS for path in sorted(folder.rglob("*.py")) if path.name != "internals.py"]


def of_self(node: ast.Attribute) -> bool:
    """Is this an attribute of `self` or `cls`?"""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


@functools.cache
def source(kind: type) -> str:
    """What is written of a class; nothing of one in C++."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def own_names(tree: ast.AST) -> set[str]:
    """What a file defines: functions, classes, variables and attributes of `self` or `cls`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node):
            names.add(node.attr)
    return names


def touched(path: Path, ours: set[str]) -> Iterator[tuple[int, str]]:
    """Line and name of every internal that a file touches."""
    tree = ast.parse(path.read_text())
    known = {part for each in internals.ALL for part in each.name.split(".") if private(part)}
    reads_formats = path.as_posix().endswith(FORMATS)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            module = (getattr(node, "module", None) or "").split(".")
            for alias in node.names:
                parts = [*module, *alias.name.split(".")]
                if parts[0] in LIBRARIES or (not module[0] and alias.name.split(".")[0] in LIBRARIES):
                    yield from ((node.lineno, part) for part in parts if private(part))
        elif isinstance(node, ast.Attribute) and private(node.attr):
            ours_here = node.attr in ours and (of_self(node) or node.attr not in known)
            if not ours_here and node.attr not in OTHERS:
                yield node.lineno, node.attr
        elif isinstance(node, ast.FunctionDef) and node.name in known:
            yield node.lineno, node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not reads_formats:
            words = node.value.split(".")
            if node.value in known or (words[0] in LIBRARIES and any(private(word) for word in words)):
                yield node.lineno, node.value


def test_no_other_file_touches_an_internal() -> None:
    ours = {name for path in files() for name in own_names(ast.parse(path.read_text()))}
    found = [f"{path}:{line}: {name}" for path in files() for line, name in touched(path, ours)]
    assert found == []


def test_what_a_step_calls_is_lightnings_own() -> None:
    """No function that Lightning calls in each step is replaced to save its time, and no name of one is there."""
    loop = {"lightning.pytorch.trainer.call", "lightning.pytorch.core.module", "lightning.pytorch.profilers"}
    assert [each.name for each in internals.ALL if each.module in loop or "_fx_name" in each.name] == []
    in_the_loop = [each.name for each in internals.ALL if each.module.startswith("lightning.pytorch.loops")]
    assert in_the_loop == ["_TrainingEpochLoop._broadcast_sigterm_tensor"]


def test_what_is_looked_for_is_found(tmp_path: Path) -> None:
    known = next(name for each in internals.ALL if private(name := each.name.split(".")[-1]))
    lines = [
        "from torch._subclasses import fake_tensor",
        "from torch.distributed.elastic.multiprocessing.api import SignalException, _signal",
        "import torch._dynamo",
        "trainer._fault",
        f"getattr(trainer, {known!r})",
        "importlib.import_module('torch._inductor.config')",
        f"class Agent:\n    def {known}(self): pass",
    ]
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.py").write_text(line)
        assert list(touched(tmp_path / f"{number}.py", set())), line
    (tmp_path / "fine.py").write_text("import torch\nself._mine = other._mine\nos._exit(0)\n")
    assert list(touched(tmp_path / "fine.py", {"_mine"})) == []


@pytest.mark.parametrize("internal", internals.ALL, ids=lambda internal: f"{internal.module}:{internal.name}")
def test_it_is_there_as_it_is_used(internal: Internal) -> None:
    assert internal.check() is None
    assert internal.why.endswith(".") and len(internal.why) > 20
    assert internal.versions.split()[0] in ("torch", "lightning")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            Internal("torch.distributed.nowhere", "thing", "Why.", "torch 2.9 to 2.13"),
            "has no torch.distributed.nowhere:thing, ",
        ),
        (Internal("torch", "nn.Module._nowhere", "Why.", "torch 2.9 to 2.13"), "has no torch:nn.Module._nowhere, "),
        (
            Internal("torch", "nn.Module.train", "Why.", "torch 2.9 to 2.13", ("self", "speed")),
            "has torch:nn.Module.train with (self, mode) in place of (self, speed), ",
        ),
    ],
    ids=["module", "name", "signature"],
)
def test_what_has_changed_is_refused_in_a_sentence(changed: Internal, sentence: str) -> None:
    with pytest.raises(internals.InternalChangedError) as refused:
        changed.get()
    text = str(refused.value)
    assert sentence in text and text.endswith(
        "which the trainer uses: install torch 2.9 to 2.13, or a newer gaudi3-scale."
    )


def test_an_attribute_that_an_object_has_no_more_is_refused() -> None:
    with pytest.raises(internals.InternalChangedError, match=r"has no .*_signal_connector, which the trainer uses: "):
        internals.SIGNAL_CONNECTOR.of(object())


def test_no_attribute_of_ours_takes_the_place_of_one_that_torch_or_lightning_has() -> None:
    """A class over one of theirs may not give another meaning to a private name."""
    clashes = []
    for found in chain.from_iterable(pkgutil.walk_packages([str(each)], f"{each.name}.") for each in OURS):
        if found.name.endswith(("__main__", ".internals")):
            continue
        module = importlib.import_module(found.name)
        for kind in {each for each in vars(module).values() if inspect.isclass(each)}:
            theirs = [base for base in kind.__mro__ if base.__module__.split(".")[0] in LIBRARIES]
            if kind.__module__ != module.__name__ or not theirs:
                continue
            ours = [base for base in kind.__mro__ if base.__module__.startswith(("gaudi3_scale.", "gaudi3_benchmark."))]
            names = set().union(*(own_names(ast.parse(textwrap.dedent(source(base)))) for base in ours))
            sources = "\n".join(map(source, theirs))
            for name in filter(private, names):
                if any(hasattr(base, name) for base in theirs) or f"self.{name} " in sources:
                    clashes.append(f"{kind.__qualname__}.{name}")
    assert clashes == []
