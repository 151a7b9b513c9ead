"""What CONTRIBUTING.md names in the checkout is there: targets, tests, files. The index of docs/ has every page."""

from __future__ import annotations

import ast
import re
import shlex

import pytest

from .documents import ROOT, commands, pieces, texts

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
HEADINGS = [
    "Set up",
    "Run one test by name",
    "Lint",
    "Add a role, a module or a configuration key",
]
#: In the place of a name in a path or a target.
PLACEHOLDER = re.compile(r"[A-Z]{2,}|[*<]")


def targets() -> list[str]:
    """The targets of the Makefile; one of a pattern has a per cent sign."""
    rules = re.findall(r"^([\w%./ -]+?):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return [target for rule in rules for target in rule.split()]


def is_target(name: str) -> bool:
    return any(re.fullmatch(re.escape(each).replace("%", ".+"), name) for each in targets())


def asked_of_make(markdown: str) -> set[str]:
    """The targets in a document's commands, without those that stand for several."""
    code, spans = pieces(markdown)
    words = {word for piece in [*code, *spans] for given in commands(piece, "make") for word in given}
    return {word for word in words if re.fullmatch(r"[a-z][\w.-]*", word) and not PLACEHOLDER.search(word)}


def lacks(command: str) -> str:
    """What a command of pytest names and the checkout has not; empty where it has all."""
    words = shlex.split(command, comments=True)[1:]
    keyword = words[words.index("-k") + 1] if "-k" in words else ""
    for word in words:
        path, _, test = word.partition("::")
        if "/" not in path:
            continue
        if not (ROOT / path).exists():
            return f"{path} is not there"
        files = [ROOT / path] if (ROOT / path).is_file() else sorted((ROOT / path).rglob("test_*.py"))
        names = {
            node.name
            for file in files
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        if test and test not in names:
            return f"{path} has no {test}"
        if keyword and not any(keyword in text for text in (*names, *(file.read_text() for file in files))):
            return f"{path} has nothing with {keyword}"
    return ""


def test_it_has_four_headings() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == HEADINGS


def test_its_tests_are_there() -> None:
    code, spans = pieces(PAGE)
    shown = [piece for piece in [*code, *spans] if piece.startswith("pytest ")]
    assert len(shown) >= 7, "the test does not find the commands"
    assert [said for command in shown if (said := lacks(command))] == []


def test_its_files_are_there() -> None:
    """In the checkout, or in a role."""
    _, spans = pieces(PAGE)
    shape = re.compile(r"[\w.-]+(/[\w.-]+)+|\w+\.(md|yml|toml)")
    paths = [span for span in spans if shape.fullmatch(span) and not PLACEHOLDER.search(span.replace("README", ""))]
    assert len(paths) > 15, "the test does not find the paths"
    assert [path for path in paths if not (ROOT / path).exists() and not (ROOT / "roles/tuning" / path).exists()] == []


def test_what_documents_make_is_a_target() -> None:
    asked = {target: name for name, text in texts().items() if name != "CHANGELOG.md" for target in asked_of_make(text)}
    assert len(asked) > 15, "the test does not find the commands"
    assert {target: name for target, name in asked.items() if not is_target(target)} == {}


def test_every_page_is_in_the_index_of_its_shelf_once_and_every_shelf_in_that_of_documents() -> None:
    docs = ROOT / "docs"
    shelves = ["start", "use", "operate", "clouds", "reference", "understand", "develop"]
    assert re.findall(r"^- \[[^]]*\]\(([\w-]+)/README\.md\)", (docs / "README.md").read_text(), re.MULTILINE) == shelves
    assert sorted(path.name for path in docs.iterdir() if path.is_dir()) == sorted(shelves)
    for shelf in shelves:
        index = (docs / shelf / "README.md").read_text()
        linked = re.findall(r"\]\(([\w-]+\.md)\)", index)
        assert sorted(linked) == sorted(path.name for path in (docs / shelf).glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pytest -q tests/unit/nowhere.py", "is not there"),
        ("pytest -q tests/unit/docs/test_links.py::test_nothing  # one", "has no test_nothing"),
        ("pytest -q tests/unit/docs/test_links.py -k qqqq" + "qqqq", "has nothing with"),
        ("pytest -q tests/unit/docs/test_links.py -k heading", ""),
    ],
)
def test_a_command_of_pytest_that_finds_nothing_is_found(command: str, said: str) -> None:
    assert said in lacks(command) and bool(said) is bool(lacks(command))


def test_a_target_that_is_not_there_is_found() -> None:
    assert asked_of_make("    make demo build sign KEY=0123  # make nothing\n\nIn `make proof-NAME`, `make lint`.") == {
        "demo",
        "build",
        "sign",
        "lint",
    }
    assert is_target("dev-plugins") and is_target(".venv/.dev".replace(".venv", "$(VENV)")) is False
    assert not is_target("tree")
