"""Files, functions, classes and parameters are called what the field calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    "plugins",
    "trainer/src",
    "doctor/src",
    "migration/src",
    "benchmark-tool/src",
    "watch/src",
    "deploy/src",
    "simulator/src",
)
#: Names that say nothing to somebody who reads a call of them.
VAGUE = {"judge", "caution", "far", "told", "consult", "must", "settled", "bereft", "words", "verdict", "over"}
VAGUE |= {"say", "place", "each", "Team", "Found", "Told", "Words"}
#: The same of parameters and of fields of a class.
VAGUE_VALUES = {"say", "words", "place", "told", "each", "team"}
#: Files whose content nobody guesses, and the helpers of tests that were called so.
VAGUE_FILES = {"again", "cheap_playbook", "crowded_trial", "desk", "end", "filling", "guard", "meeting", "optimizer"}
VAGUE_FILES |= {"pausing", "plain", "poisoning", "team", "twins", "wanted", "ways", "words"}
#: Keys of a file or of the configuration, which keep their names.
KEYS = {
    "benchmark-tool/src/gaudi3_benchmark/result.py: Row.words",
    "trainer/src/gaudi3_scale/config/cost.py: CostConfig.team",
    "trainer/src/gaudi3_scale/cost/chargeback.py: Charge.team",
    "trainer/src/gaudi3_scale/cost/chargeback.py: Group.team",
}


def vague_names(tree: ast.Module) -> Iterator[str]:
    """Vague names of functions, classes and types, of parameters as `function(name)` and of fields as `Class.name`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            yield from (f"{node.name}({each.arg})" for each in named if each.arg.strip("_") in VAGUE_VALUES)
        elif isinstance(node, ast.ClassDef):
            fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            yield from (
                f"{node.name}.{each.id}" for each in fields if isinstance(each, ast.Name) and each.id in VAGUE_VALUES
            )
        else:
            continue
        if node.name.strip("_") in VAGUE:
            yield node.name
    for assigned in (each for each in tree.body if isinstance(each, ast.Assign)):
        yield from (each.id for each in assigned.targets if isinstance(each, ast.Name) and each.id.strip("_") in VAGUE)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_name_says_what_it_is(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > 5
    found = {f"{p.relative_to(ROOT)}: {each}" for p in paths for each in vague_names(ast.parse(p.read_text()))}
    assert found == {each for each in KEYS if each.startswith(f"{folder}/")}
    assert [str(path.relative_to(ROOT)) for path in paths if path.stem.strip("_") in VAGUE_FILES] == []


def test_helpers_of_tests_say_what_they_are() -> None:
    folders = (
        "tests",
        "trainer/tests",
        "deploy/tests",
        "simulator/tests",
        "doctor/tests",
        "migration/tests",
        "benchmark-tool/tests",
        "watch/tests",
    )
    names = {path.stem for folder in folders for path in (ROOT / folder).rglob("*.py")}
    assert names & VAGUE_FILES == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def _told(): pass", ["_told"]),
        ("def write(say, *words, each=1): pass", ["write(say)", "write(each)", "write(words)"]),
        ("class Found:\n    place: str", ["Found.place", "Found"]),
        ("class A:\n    def over(self): each = 1", ["over"]),
        ("Found = tuple[str, str]", ["Found"]),
        ("def write(): say = words", []),
    ],
)
def test_a_vague_name_is_found(source: str, found: list[str]) -> None:
    assert list(vague_names(ast.parse(source))) == found
