"""Every command of ours that the documentation shows is one that the program understands."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from gaudi3_deploy import cli as deploy

from gaudi3_scale import cli as train
from gaudi3_scale.config import load
from gaudi3_simulator import cli as simulator
from gaudi3_simulator.node import cli as node
from gaudi3_simulator.node import faults
from gaudi3_simulator.parser import split
from gaudi3_watch import cli as watch
from tests.suite import proofs

from .documents import ROOT, commands, documented, pieces


def understand_simulator(given: list[str]) -> None:
    own, command = split(given)
    options = simulator.build_parser().parse_args(own)
    assert command is None or options.command == "ssh", "only ssh takes a command"
    if options.command == "fault" and options.kind:
        faults.make(options.kind, options.card, options.port, 8)


def understand_node(given: list[str]) -> None:
    node.build_parser().parse_args(given)


def parse(app: typer.Typer, given: list[str]) -> Any:
    """Parse the arguments as the program does, and run nothing."""
    group: Any = typer.main.get_command(app)
    outer = group.make_context("program", list(given))
    name, command, rest = group.resolve_command(outer, [*outer._protected_args, *outer.args])
    return command.make_context(name, rest, parent=outer)


def understand_train(given: list[str]) -> None:
    settings = parse(train.app, given).params.get("overrides") or ()
    for folder in (value for value in settings if "=./" in value):
        Path(folder.partition("=")[2]).mkdir(exist_ok=True)
    load(None, settings)


def understand_deploy(given: list[str]) -> None:
    parse(deploy.app, given)


def understand_watch(given: list[str]) -> None:
    parse(watch.app, given)


def verbs(parser: argparse.ArgumentParser) -> set[str]:
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return set(action.choices)


PROGRAMS: dict[str, tuple[Callable[[list[str]], None], int]] = {
    "gaudi3-simulator": (understand_simulator, 8),
    "gaudi3-simulator-node": (understand_node, 0),
    "gaudi3-train": (understand_train, 18),
    "gaudi3-deploy": (understand_deploy, 9),
    "gaudi3-watch": (understand_watch, 3),
}
#: Options that stand in the place of a command.
EVERYWHERE = {"--help", "--install-completion", "--version"}
VERBS = {
    "gaudi3-simulator": verbs(simulator.build_parser()),
    "gaudi3-simulator-node": verbs(node.build_parser()),
    "gaudi3-train": set(typer.main.get_command(train.app).commands),  # type: ignore[attr-defined]
    "gaudi3-deploy": set(typer.main.get_command(deploy.app).commands),  # type: ignore[attr-defined]
    "gaudi3-watch": set(typer.main.get_command(watch.app).commands),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_documented_commands_are_understood(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    understands, least = PROGRAMS[program]
    shown, named = documented(program)
    assert len(shown) >= least, "the test does not find what the documentation shows"
    wrong = [f"{where}: {program} has no {verb}" for where, verb in named if verb not in VERBS[program] | EVERYWHERE]
    for where, given in shown:
        if given in ([option] for option in EVERYWHERE):
            continue
        try:
            understands(given)
        except (Exception, SystemExit) as error:
            wrong.append(f"{where}: {program} {shlex.join(given)}: {getattr(error, 'message', '') or error!r}")
    assert wrong == []


def test_documented_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([a-z][a-z -]*):", makefile, re.MULTILINE) for name in line.split()}
    assert "\nproof-%:" in makefile
    targets |= {f"proof-{name}" for name in proofs.read()}
    shown, named = documented("make")
    asked = [(where, word) for where, given in shown for word in given if re.fullmatch(r"[a-z-]+", word)]
    assert len(asked) > 5
    assert [(where, target) for where, target in [*asked, *named] if target.islower() and target not in targets] == []


def test_documented_playbooks_exist() -> None:
    shown, _named = documented("ansible-playbook")
    places = [
        (where, word) for where, given in shown for word in given if re.fullmatch(r"[\w/.-]+\.yml|gaudi3\.[\w.]+", word)
    ]
    playbooks = [
        (where, f"playbooks/{word.removeprefix('gaudi3.scale.')}.yml" if word.startswith("gaudi3.") else word)
        for where, word in places
    ]
    assert len(playbooks) > 5
    assert [(where, path) for where, path in playbooks if not (ROOT / path).is_file()] == []


def test_a_runbook_names_playbooks_as_the_installed_collection_has_them() -> None:
    """Who is called by an alert has no checkout at hand."""
    runbooks = sorted((ROOT / "docs" / "operate" / "runbooks").glob("*.md"))
    paths = {path.name: re.findall(r"playbooks/[\w/]+\.yml|(?<![\w.])site\.yml", path.read_text()) for path in runbooks}
    assert len(paths) > 20 and {name: found for name, found in paths.items() if found} == {}


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("gaudi3-simulator", "gaudi3-simulator fault gaudi-1 no-such-fault"),
        ("gaudi3-simulator", "gaudi3-simulator fault gaudi-1 driver-not-loaded --card 3"),
        ("gaudi3-simulator", "gaudi3-simulator break gaudi-1"),
        ("gaudi3-train", "gaudi3-train fit train.no_such_key=1 > log"),
        ("gaudi3-train", "torchrun --no-python gaudi3-train fit \\\n        --no-such-option"),
        ("gaudi3-deploy", "cd there; gaudi3-deploy up demo --no-such-option    # comment"),
    ],
)
@pytest.mark.parametrize("block", ["Do this:\n\n    {}\n", "Do this:\n\n```shell\n{}\n```\n"])
def test_a_command_that_does_not_exist_is_found(program: str, line: str, block: str) -> None:
    code, _spans = pieces(block.format(line))
    (given,) = (given for piece in code for given in commands(piece, program))
    with pytest.raises((Exception, SystemExit)) as error:
        PROGRAMS[program][0](given)
    assert error.typename in {"SystemExit", "FaultError", "ConfigError", "NoSuchOption"}


def test_what_a_command_printed_is_no_command() -> None:
    code, spans = pieces("```sh\ngaudi3-train goodput run\n```\n\n```text\ngaudi3-train goodput run shows it\n```\n")
    assert (code, spans) == (["gaudi3-train goodput run"], [])


def test_a_verb_that_does_not_exist_is_found_in_running_text() -> None:
    _code, spans = pieces("Say `gaudi3-simulator\nbreak` to break one.")
    assert [commands(span, "gaudi3-simulator") for span in spans] == [[["break"]]]
    assert "break" not in VERBS["gaudi3-simulator"]
