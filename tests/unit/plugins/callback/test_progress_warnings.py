"""Warnings of modules, whose text is a node's: shown once, as text on which a terminal does not act."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.callback.progress import CallbackModule
from ansible_collections.gaudi3.scale.plugins.plugin_utils.results import is_rescued, part, with_cause

FOREIGN = "Beware \x1b[31m of it."


class Display:
    verbosity = 0

    def __init__(self) -> None:
        self.warned: list[str] = []

    def warning(self, text: str) -> None:
        self.warned.append(text)


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> CallbackModule:
    made = CallbackModule()
    monkeypatch.setattr(made, "_display", Display())
    return made


@pytest.mark.parametrize("name", ["result", "_result"])
def test_a_warning_does_not_act_on_a_terminal(callback: CallbackModule, name: str) -> None:
    """As ansible-core 2.17 has it, a text; from 2.19 on an object, beside which the answer has the same."""
    answer: dict[str, Any] = {"warnings": [FOREIGN]}
    callback._warn(SimpleNamespace(**{name: answer}))
    assert callback._display.warned == [r"Beware \x1b[31m of it."] and answer == {}
    summary = SimpleNamespace(event=SimpleNamespace(msg=FOREIGN))
    answer = {"warnings": [summary]}
    callback._warn(SimpleNamespace(**{name: answer, "warnings": [summary]}))
    assert callback._display.warned == [r"Beware \x1b[31m of it."] * 2 and answer == {}
    callback._warn(SimpleNamespace(**{name: {}}))
    assert len(callback._display.warned) == 2


def test_a_failure_is_caught_by_a_block_and_not_by_the_block_of_its_own_rescue() -> None:
    block = SimpleNamespace(_uuid="b", rescue=[SimpleNamespace(_uuid="r")], always=[], _parent=None)
    assert is_rescued(SimpleNamespace(_uuid="t", _parent=block))
    assert not is_rescued(SimpleNamespace(_uuid="r", _parent=block))
    assert not is_rescued(SimpleNamespace(_uuid="t", _parent=None))
    assert part(SimpleNamespace(_task=1), "task") == 1


def test_the_first_cause_of_an_exception_is_shown_unless_the_sentence_has_it() -> None:
    cause = SimpleNamespace(msg="[Errno 2] No such file:\n\x1b[2J python3.99", chain=None)
    top = SimpleNamespace(msg="Error executing command.", chain=SimpleNamespace(event=cause))
    result = SimpleNamespace(exception=SimpleNamespace(event=top))
    lines = ["Error executing command."]
    assert with_cause(lines, result) == [*lines, "[Errno 2] No such file:", r"\x1b[2J python3.99"]
    lines = ["[Errno 2] No such file:", r"\x1b[2J python3.99"]
    assert with_cause(lines, result) == lines and with_cause(lines, SimpleNamespace()) == lines
