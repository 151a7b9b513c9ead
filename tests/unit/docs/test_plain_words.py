"""Words that a reader stumbles over, each with a better one: in documents, docstrings and messages."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
#: What is found, and what to write. "Told to" is said of somebody who gets an order, as elsewhere.
WORDS = {
    r"\btold\b(?! to\b)": "reported, named, said",
    r"\banew\b": "again, from the beginning, a new",
    r"\bgo(?:es)? before\b": "takes precedence over, comes before",
    r"\bpassed over\b": "skipped",
    r"\ball the same\b": "anyway, still",
    r"\bat hand\b": "this, available",
    r"\bso many\b(?! that\b)": "that many, this many",
    r"\b(?:nothing|what|all|more) of it (?:is|was)\b": "none of it, what is",
    r"\bhas it not\b": "where it does not have one",
    r"\b(?:can|cannot|could|may|might|to) be had\b": "is available, is not available, can be restored",
    r"\bhalf[ -]made\b": "incomplete",
    r"\bwithout mercy\b": "with SIGKILL",
    r"\ARefusal (?:where|if)\b": "Refuse ..., with a verb",
    r"\AFor readers\b": "what it returns, as a text or a sentence",
}
#: The same in documents alone; what a message says may be quoted.
IN_DOCUMENTS = {r"\bgo(?:es)? on\b(?! (?:to|for)\b|\.\")": "continue, resume"}
#: The distributions and the plugins: their docstrings and their strings that are sentences.
PYTHON = (
    "plugins",
    "trainer/src",
    "doctor/src",
    "migration/src",
    "benchmark-tool/src",
    "watch/src",
    "deploy/src",
    "simulator/src",
    "website",
)
#: Files of which a user reads every line, comments too.
PLAIN = (
    "terraform/*.tf",
    "examples/*",
    "docs/*.yml",
    "website/*.js",
    "website/*.html",
    "watch/*.js",
    "watch/*.html",
    "roles/*.j2",
)
#: A string of fewer words is a key, a name or an option rather than a sentence.
FEWEST_WORDS = 3
QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
TEMPLATED = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


def faults(name: str, text: str, first: int = 1, words: Mapping[str, str] = WORDS) -> list[str]:
    """What is to be written otherwise in a text that begins at the line `first`, by line."""
    plain = re.sub(r"```.*?```|`[^`\n]*`", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    return [
        f"{name}:{plain.count(chr(10), 0, found.start()) + first}: '{found[0]}', better: {better}"
        for pattern, better in words.items()
        for found in re.finditer(pattern, plain, re.IGNORECASE)
    ]


def listed(*patterns: str) -> list[str]:
    """The tracked files of these patterns."""
    found = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return found.stdout.split()


def documents() -> dict[str, str]:
    """Every text of the user's documentation, by its file."""
    names = ["*.md", "roles/*/meta/argument_specs.yml", "roles/*/defaults/main.yml", "plugins/modules/*.py"]
    found = {}
    for name in listed(*names):
        if name.startswith(("proofs/", "CHANGELOG")):  # what was written by a run at its time
            continue
        text = (ROOT / name).read_text()
        if name.endswith(".py"):
            text = "\n".join(re.findall(r'^(?:DOCUMENTATION|RETURN) = r?"""(.*?)"""', text, re.DOTALL | re.MULTILINE))
            text = re.sub(r"^ *told:$", "", text, flags=re.MULTILINE)  # a key of an answer
        found[name] = text
    return found


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the text of each string below a node; an f-string is one, with `{}` for each value."""
    if isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        children = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    else:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from strings(child)


def python_faults(name: str, source: str) -> list[str]:
    """What is to be written otherwise in docstrings and messages."""
    found = []
    for line, text in strings(ast.parse(source)):
        if len(re.findall(r"[A-Za-z]+", text)) >= FEWEST_WORDS:
            keyless = re.sub(r"^ *told:$", "", text, flags=re.MULTILINE)  # a key of an answer
            found += faults(name, keyless, line)
    return found


def without_names(text: str) -> str:
    """A template's text, and the strings of its expressions, without their names."""
    return TEMPLATED.sub(
        lambda found: (
            " ".join(first or second for first, second in QUOTED.findall(found[0])) + "\n" * found[0].count("\n")
        ),
        text,
    )


def yaml_faults(name: str, text: str) -> list[str]:
    """What is to be written otherwise in the names of tasks, in messages and in other values of a YAML file."""
    found: list[str] = []

    def visit(node: yaml.Node) -> None:
        if isinstance(node, yaml.ScalarNode):
            found.extend(faults(name, without_names(node.value), node.start_mark.line + 1))
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                visit(item)
        elif isinstance(node, yaml.MappingNode):
            for _, value in node.value:
                visit(value)

    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        visit(document)
    return found


def test_documents_have_none_of_the_words() -> None:
    texts = documents()
    assert len(texts) > 120
    assert [fault for name, text in texts.items() for fault in faults(name, text, words=WORDS | IN_DOCUMENTS)] == []


def test_a_word_of_documents_is_found_in_them_alone() -> None:
    assert faults("x", "It goes on.") == []
    assert faults("x", "It goes on.", words=IN_DOCUMENTS) == ["x:1: 'goes on', better: continue, resume"]
    assert faults("x", 'It says "before you go on."', words=IN_DOCUMENTS) == []


@pytest.mark.parametrize("folder", PYTHON)
def test_docstrings_and_messages_have_none_of_the_words(folder: str) -> None:
    names = listed(f"{folder}/*.py")
    assert len(names) > 5
    assert [fault for name in names for fault in python_faults(name, (ROOT / name).read_text())] == []


def test_tasks_and_their_messages_have_none_of_the_words() -> None:
    names = listed("roles/*.yml", "playbooks/*.yml", "site.yml")
    assert len(names) > 120
    assert [fault for name in names for fault in yaml_faults(name, (ROOT / name).read_text())] == []


@pytest.mark.parametrize("pattern", PLAIN)
def test_other_files_that_users_read_have_none_of_the_words(pattern: str) -> None:
    names = listed(pattern)
    assert names
    assert [fault for name in names for fault in faults(name, (ROOT / name).read_text())] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            'def f():\n    """One.\n\n    It starts anew.\n    """',
            ["x:4: 'anew', better: again, from the beginning, a new"],
        ),
        ("raise E(\n    f'{a} is passed'\n    f' over by {b}')", ["x:2: 'passed over', better: skipped"]),
        ("say(f\"{len(x, 'it is told')}\")", ["x:1: 'told', better: reported, named, said"]),
        ("answer['told'] = told  # told", []),
    ],
)
def test_a_word_in_python_is_found_by_its_string(source: str, found: list[str]) -> None:
    assert python_faults("x", source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("- name: Write it anew\n  x:", ["x:1: 'anew', better: again, from the beginning, a new"]),
        ("- a: {msg: \"{{ b.told ~ 'is passed over' }}\"}", ["x:1: 'passed over', better: skipped"]),
        ("told: 1", []),
    ],
)
def test_a_word_in_a_task_is_found_by_its_value(source: str, found: list[str]) -> None:
    assert yaml_faults("x", source) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody\nis told\nof it.", ["x:2: 'told', better: reported, named, said"]),
        ("A job that is told to leave leaves, and `told` is a key.", []),
        ("It starts anew.", ["x:1: 'anew', better: again, from the beginning, a new"]),
        ("There are so many that all are shown.", []),
        ("Nothing of it is kept.", ["x:1: 'Nothing of it is', better: none of it, what is"]),
    ],
)
def test_a_word_is_found_by_its_line(text: str, found: list[str]) -> None:
    assert faults("x", text) == found
