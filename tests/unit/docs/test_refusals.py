"""docs/operate/refusals.md: what it quotes is what the code says, and no consent that a role asks for is missing."""

from __future__ import annotations

import ast
import functools
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.rules import ROLE, RULES, Rule
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.phases import PHASES

from .documents import ROOT
from .test_variables import SPECIFIED

PAGE = ROOT / "docs/operate/refusals.md"
WALK = ROOT / "docs/start/first-cluster.md"
CONSENT = re.compile(r"_(?:accept|allow)_|_take_over(?:_|$)|_allowed$")


def strings(value: Any) -> Iterator[str]:
    """All texts of a YAML file."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from strings(each)


def sentences(path: Path) -> Iterator[str]:
    """What a file of the product may say: its texts, those with values in them piece by piece."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    else:
        yield from strings(yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


@functools.cache
def said() -> list[str]:
    """All that roles, playbooks, modules and the trainer may say, with single spaces."""
    paths = [
        path
        for pattern in (
            "roles/*/tasks/*.yml",
            "roles/*/vars/*.yml",
            "playbooks/*.yml",
            "plugins/**/*.py",
            "trainer/src/**/*.py",
            "doctor/src/**/*.py",
        )
        for path in sorted(ROOT.glob(pattern))
    ]
    texts = [text for path in paths for text in sentences(path)] + [each for rule in RULES for each in of_rule(rule)]
    return [" ".join(text.split()) for text in texts]


def of_rule(rule: Rule) -> list[str]:
    """What the role trainer says for a rule of a job, without the values in it."""
    pieces = string.Formatter().parse(rule.template(ROLE))
    said = "".join(text + (ROLE.get(field, "\0") if field else "") for text, field, _spec, _conversion in pieces)
    return said.split("\0")


def quoted(markdown: str) -> list[str]:
    """The words of messages that the page's tables quote: their first column, in quotation marks."""
    first = [line.strip("|").split(" | ")[0] for line in markdown.splitlines() if line.startswith("|")]
    return [quote for cell in first for quote in re.findall(r"\"([^\"]+)\"", cell)]


def test_quoted_messages_are_in_the_code() -> None:
    quotes = quoted(PAGE.read_text())
    assert len(quotes) > 20, "the test does not find what the page quotes"
    code = said()
    assert [quote for quote in quotes if not any(quote in text for text in code)] == []


def test_every_consent_of_a_role_is_on_the_page() -> None:
    text = PAGE.read_text()
    consents = [name for name in SPECIFIED if CONSENT.search(name)]
    assert len(consents) > 9
    assert [name for name in consents if f"`{name}" not in text] == []


def test_every_refusal_of_a_script_of_ones_own_is_on_the_page() -> None:
    texts = [*sentences(ROOT / "plugins/module_utils/_jobs/problems.py")]
    texts += [text for rule in RULES for text in of_rule(rule)]
    refusals = [text for text in texts if "trainer_command" in text or "of which a job has its own" in text]
    assert len(refusals) > 9
    quotes = quoted(PAGE.read_text())
    assert [text for text in refusals if not any(quote in text for quote in quotes)] == []
    assert "roles/trainer/README.md#a-script-of-your-own" in WALK.read_text()


def test_the_walk_leads_to_the_page() -> None:
    assert "../operate/refusals.md" in WALK.read_text() and "../start/first-cluster.md" in PAGE.read_text()


def test_every_role_that_the_preflight_asks_is_linked() -> None:
    asked = re.findall(r"name: gaudi3\.scale\.(\w+)", (ROOT / "playbooks/preflight.yml").read_text())
    asked += [question.role for phase in PHASES for question in (*phase.questions, *phase.details)]
    assert {"tuning", "synapseai", "fabric", "node_exporter", "trainer"} <= set(asked)
    assert [role for role in asked if f"../roles/{role}/README.md" not in PAGE.read_text()] == []


@pytest.mark.parametrize("quote", ["which may make results better", "Secure Boot is off and"])
def test_a_message_that_nothing_says_is_found(quote: str) -> None:
    assert quoted(f'| message | remedy |\n|---|---|\n| "{quote}" | none |') == [quote]
    assert not any(quote in text for text in said())
