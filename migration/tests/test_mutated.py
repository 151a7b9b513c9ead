"""Two hundred programs of the same parts in other forms: nothing is lost in silence."""

from __future__ import annotations

import ast
import os
import random
import re
from itertools import product
from pathlib import Path

import pytest
from mutations import GONE, TABLES, Mutated, drawn, mutated
from stubs import run

from gaudi3_migration import Migrated, migrate

SEEDS = 200
WORDS = re.compile(rf"\b(?:{'|'.join((*GONE, 'gaudi_config', 'mark_step'))})\b")


def faults(made: Mutated, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is wrong with the rewriting of a program."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(made.text)
    for name, source in made.helpers.items():
        (folder / f"{name}.py").write_text(source)
    files = migrate(program)
    found = [fault for each in files for fault in _unsaid(each)]
    for each in files:
        each.path.write_text(each.after)
    found += [f"changed again: {each.path.name}" for each in migrate(program) if each.before != each.after]
    return found + _run(made, files, monkeypatch)


def _unsaid(file: Migrated) -> list[str]:
    """Statements of the original that name what is no more, and no finding of their lines does."""
    found = []
    own = set(re.findall(r"^    (\w+): object = ", file.before, re.MULTILINE))  # said there, and read as they are
    statements = [each for each in ast.walk(ast.parse(file.before)) if isinstance(each, ast.stmt)]
    blocks = (ast.If, ast.FunctionDef, ast.ClassDef, ast.For, ast.With, ast.Try, ast.Match)
    for each in statements:
        start, end = each.lineno, each.end_lineno or each.lineno
        if isinstance(each, blocks) and end > start:
            inner = getattr(each, "body", None) or each.cases[0].body  # type: ignore[union-attr]
            start, end = min([start, *(d.lineno for d in getattr(each, "decorator_list", []))]), inner[0].lineno - 1
        lines = file.before.splitlines()[start - 1 : end]
        said = " ".join(f"{one.what}: {one.then}" for one in file.findings if start <= one.line <= end)
        text = "\n".join(lines)
        missing = {word for word in WORDS.findall(text) if word not in said and (word not in own or ": object" in text)}
        found += [f"unsaid: line {start}, {', '.join(sorted(missing))}: {lines[0].strip()}"] if missing else []
    return found


def _run(made: Mutated, files: list[Migrated], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the trainer is given otherwise than before, and nobody says; both programs are run."""
    left = " ".join(f"{one.what}: {one.then}" for each in files for one in each.left)
    said = " ".join(f"{one.what}: {one.then}" for each in files for one in each.findings)
    before = run(made.text, made.helpers, monkeypatch, True)
    helpers = {each.path.stem: each.after for each in files[1:]}
    helpers = made.helpers | helpers
    try:
        after = run(files[0].after, helpers, monkeypatch, False)
    except Exception as error:
        named = {word for word in re.findall(r"\w+", str(error)) if len(word) > 2}
        counted = re.search("positional argument|multiple values", str(error)) and "the Gaudi configuration" in left
        return [] if counted or any(word in left for word in named) else [f"stops, unsaid: {error!r}"]
    found = []
    old, new = before["args"], after["args"]
    for name in ("output_dir", "seed"):
        if getattr(old, name) != getattr(new, name):
            found.append(f"{name} is {getattr(new, name)!r}, not {getattr(old, name)!r}")
    if old.adam_epsilon != new.adam_epsilon and "adam_epsilon" not in said:
        found.append("adam_epsilon is another, unsaid")
    if old.warmup_ratio != (new.warmup_steps or 0.0) and "warmup_ratio" not in left:
        found.append(f"warmup_steps is {new.warmup_steps!r}, unsaid")
    if before["fused"] != after["fused"] and "use_fused_adam" not in left and "GaudiConfig" not in left:
        found.append("the optimizer is another, unsaid")
    return found


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_a_mutated_program(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for seed in range(first, first + 50):
        made = drawn(seed)
        if wrong := faults(made, tmp_path / str(seed), monkeypatch):
            found[seed] = (wrong, made.forms)
    assert found == {}


@pytest.mark.proof
@pytest.mark.skipif("GAUDI3_PROOF" not in os.environ, reason="make proof-migration runs them")
@pytest.mark.parametrize("pair", [("import", "arguments"), ("arguments", "read"), ("wrap", "call"), ("import", "wrap")])
def test_every_pair_of_forms(pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for number, (one, two) in enumerate(product(*(TABLES[name] for name in pair))):
        plain = {name: next(iter(table)) for name, table in TABLES.items()} | dict(zip(pair, (one, two), strict=True))
        if wrong := faults(mutated(random.Random(number), plain), tmp_path / str(number), monkeypatch):
            found[one, two] = wrong
    assert found == {}
