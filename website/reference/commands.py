"""The page of all commands, read from their own parsers."""

from __future__ import annotations

import argparse
import enum
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from website.reference.text import code, document, prose, table, value

TITLE = "Commands and options"
#: Options that every Typer application has, which say nothing about the command.
COMPLETION = ("--install-completion", "--show-completion")


@dataclass(frozen=True)
class Option:
    """An option or argument of a command."""

    name: str
    takes: str
    default: str
    what: str


@dataclass(frozen=True)
class Command:
    """A command; its name is the whole of what one types."""

    name: str
    what: str
    options: tuple[Option, ...]


def page() -> str:
    """The page."""
    parts = [
        f"# {TITLE}",
        "Every command of the project with its arguments and options, for whoever looks for one. It is made from the "
        "commands' own parsers; `COMMAND --help` prints the same.",
    ]
    for command in commands():
        deep = "##" if " " not in command.name else "###"
        parts += [f"{deep} {command.name}", prose_of(command.what)]
        rows = [(each.name, each.takes, each.default, each.what) for each in command.options]
        parts.append(table(("option", "takes", "default", "what"), rows))
    parts += ["## Next", "- [Exit codes](exit-codes.md): what a command's end means to a script"]
    return document(*parts)


def prose_of(text: str) -> str:
    """A command's help, whose paragraphs stay."""
    return "\n\n".join(prose(each) for each in text.split("\n\n"))


def commands() -> Iterator[Command]:
    """All commands, each before its subcommands."""
    from gaudi3_deploy import cli as deploy

    from gaudi3_benchmark.cli import app as benchmark
    from gaudi3_scale.cli import app as train
    from gaudi3_simulator.parser import build_parser
    from gaudi3_watch.cli import app as watch

    yield from of_typer("gaudi3-train", train)
    yield from of_typer("gaudi3-deploy", vars(deploy)["app"])
    yield from of_typer("gaudi3-watch", watch)
    yield from of_typer("gaudi3-benchmark", benchmark)
    yield from of_argparse(build_parser())


def of_typer(program: str, app: Any) -> Iterator[Command]:
    """A Typer application's commands."""
    from typer.main import get_command

    yield from _click(program, get_command(app))


def _click(name: str, command: Any) -> Iterator[Command]:
    shown = [each for each in command.params if not each.hidden and not set(each.opts) & set(COMPLETION)]
    yield Command(name, str(command.help or ""), tuple(_option(each) for each in shown))
    for inner, sub in getattr(command, "commands", {}).items():
        if not sub.hidden:
            yield from _click(f"{name} {inner}", sub)


def _option(parameter: Any) -> Option:
    is_option = parameter.opts[0].startswith("-")
    if is_option:
        names = [*parameter.opts, *parameter.secondary_opts]
        name = ", ".join(code(each) for each in names)
    else:
        name = code(str(parameter.metavar or parameter.name.upper()))
    default = parameter.default
    told = (
        "required"
        if parameter.required
        else ""
        if default in (None, False, ()) or callable(default)
        else shown(default)
    )
    flag = is_option and parameter.is_flag
    return Option(name, "" if flag else takes(parameter), told, prose(parameter.help or ""))


def shown(default: object) -> str:
    """A default as one types it."""
    if isinstance(default, enum.Enum):
        return code(str(default.value))
    home = str(Path.home())
    return value(str(default).replace(home, "~", 1) if isinstance(default, Path) else default)


def takes(parameter: Any) -> str:
    """What kind of value a parameter takes, in words."""
    found = words(parameter.type_descriptor.annotation)
    bounds = [
        f"{text} {bound}"
        for bound, text in ((parameter.min, "at least"), (parameter.max, "at most"))
        if bound is not None
    ]
    return f"{found}, {' and '.join(bounds)}" if bounds else found


def words(annotation: Any) -> str:
    """A type in words; choices are listed.

    >>> words(list[int]), words(Path), words(int | None)
    ('number, several', 'path', 'number')
    """
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(code(str(each.value)) for each in annotation)
    inner = [each for each in typing.get_args(annotation) if each is not type(None)]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType) and inner:
        return words(inner[0])
    if origin is typing.Literal:
        return ", ".join(code(str(each)) for each in inner)
    if origin in (list, tuple) and inner:
        one = words(inner[0])
        return f"{one}, several"
    return {int: "number", float: "number", Path: "path", bool: "flag"}.get(annotation, "text")


def of_argparse(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """An argparse parser's commands."""
    subparsers = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    plain = [
        each
        for each in parser._actions
        if each not in subparsers and not isinstance(each, argparse._HelpAction) and each.help != argparse.SUPPRESS
    ]
    yield Command(parser.prog, parser.description or "", tuple(_action(each, parser.prog) for each in plain))
    for group in subparsers:
        listed = {each.dest for each in group._choices_actions}
        for name, sub in group.choices.items():
            if name in listed:
                yield from of_argparse(sub)


def _action(action: argparse.Action, program: str) -> Option:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    name = ", ".join(code(each) for each in action.option_strings) or code(metavar)
    taken = ""
    if action.nargs != 0:
        taken = (
            ", ".join(code(str(each)) for each in action.choices)
            if action.choices
            else "number"
            if action.type is int
            else "text"
        )
    filled = {**vars(action), "prog": program}
    what = (action.help or "").replace("%%", "%") if "%(" not in (action.help or "") else str(action.help) % filled
    told = "required" if action.required and action.option_strings else ""
    return Option(name, taken, told, prose(what))
