"""Words that a reader stumbles over, each with a better one: in documents, and in what documents roles and modules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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
}


def faults(name: str, text: str) -> list[str]:
    """What is to be written otherwise in a text, by line."""
    plain = re.sub(r"```.*?```|`[^`\n]*`", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    return [
        f"{name}:{plain.count(chr(10), 0, found.start()) + 1}: '{found[0]}', better: {better}"
        for pattern, better in WORDS.items()
        for found in re.finditer(pattern, plain, re.IGNORECASE)
    ]


def documents() -> dict[str, str]:
    """Every text of the user's documentation, by its file."""
    names = ["*.md", "roles/*/meta/argument_specs.yml", "roles/*/defaults/main.yml", "plugins/modules/*.py"]
    listed = subprocess.run(["git", "ls-files", *names], cwd=ROOT, check=True, capture_output=True, text=True)
    found = {}
    for name in listed.stdout.split():
        if name.startswith(("proofs/", "CHANGELOG")):  # what was written by a run at its time
            continue
        text = (ROOT / name).read_text()
        if name.endswith(".py"):
            text = "\n".join(re.findall(r'^(?:DOCUMENTATION|RETURN) = r?"""(.*?)"""', text, re.DOTALL | re.MULTILINE))
            text = re.sub(r"^ *told:$", "", text, flags=re.MULTILINE)  # a key of an answer
        found[name] = text
    return found


def test_documents_have_none_of_the_words() -> None:
    texts = documents()
    assert len(texts) > 120
    assert [fault for name, text in texts.items() for fault in faults(name, text)] == []


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
