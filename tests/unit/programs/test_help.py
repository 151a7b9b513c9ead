"""Every option and argument of every program says in a sentence what it is for."""

from __future__ import annotations

import argparse
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from gaudi3_simulator import parser

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = {
    name: place
    for project in ("trainer", "benchmark-tool", "watch", "deploy", "simulator")
    for name, place in tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["scripts"].items()
}
#: Written by the libraries.
THEIRS = {"help", "install_completion", "show_completion"}


def of_typer(command: Any, words: str) -> Iterator[tuple[str, str]]:
    """(command and parameter, its text) of a command and those below it."""
    yield words, command.help or ""
    for each in command.params:
        if each.name not in THEIRS and not getattr(each, "hidden", False):
            yield f"{words} {each.name}", getattr(each, "help", None) or ""
    for name, below in getattr(command, "commands", {}).items():
        yield from of_typer(below, f"{words} {name}")


def of_argparse(command: argparse.ArgumentParser, words: str) -> Iterator[tuple[str, str]]:
    yield words, command.description or ""
    for each in command._actions:
        if isinstance(each, argparse._SubParsersAction):
            for name, below in each.choices.items():
                yield from of_argparse(below, f"{words} {name}")
        elif each.dest not in THEIRS and each.help != argparse.SUPPRESS:
            yield f"{words} {each.dest}", each.help or ""


def texts(program: str) -> list[tuple[str, str]]:
    if program == "gaudi3-simulator":
        return list(of_argparse(parser.build_parser(), program))
    module = importlib.import_module(PROGRAMS[program].partition(":")[0])
    return list(of_typer(typer.main.get_command(module.app), program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_and_option_says_what_it_is_for(program: str) -> None:
    found = texts(program)
    assert len(found) > 15
    assert [words for words, text in found if len(text.split()) < 2] == []
