# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The command of this run, to type again: without what may be a secret."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Optional

from .._secret_words import names_secret, secret_kind

#: Options that only predict, each with the shortest beginning of it that Ansible takes.
_PREDICTS = (("--check", "--ch"), ("--diff", "--d"))
#: Short options in one argument: those without a value, and behind them one that may have its value in the same.
_SHORT = re.compile(r"-([vCDbkKJ]*)((?:[iletucTMf].*)?)", re.DOTALL)
#: Names of several secrets, and short ones. To leave a command out that has none costs less than to show one that has.
_SEVERAL = re.compile(r"pass|secret|token|cred|api_?key|(?:^|_)pwd?(?:_|$)", re.IGNORECASE)
_ENTRY = re.compile(r"[\"']?([A-Za-z_]\w*)[\"']?\s*[=:]")


def program(arguments: Sequence[str], typed: Sequence[str], found: Callable[[str], Optional[str]]) -> list[str]:
    """The words that start Ansible as it was started, from its arguments, its program first.

    ``typed`` is the whole command, with the interpreter that runs the program. ``found`` says which file a shell takes
    for a name.
    """
    path = arguments[0]
    name = os.path.basename(path)
    if name.endswith(".py"):
        # python -m ansible playbook, or a file that is no program.
        return list(typed[: max(1, len(typed) - len(arguments) + 1)])
    file = found(name)
    same = name == path or (file is not None and os.path.realpath(file) == os.path.realpath(path))
    return [name if same else path]


def listing(arguments: Sequence[str], begin: Sequence[str], playbooks: Sequence[str]) -> str:
    """The command that shows the tags of these playbooks."""
    entry = ["playbook"] if os.path.basename(arguments[0]) == "__main__.py" else []
    return shlex.join([*begin, *entry, *playbooks, "--list-tags"])


def again(arguments: Sequence[str], really: bool = False, begin: Sequence[str] = ()) -> Optional[str]:
    """The command with these arguments, its program first, as a line for a shell that begins with ``begin``.

    With ``really`` without the options that only predict. None where an argument may hold a secret.
    """
    if not arguments or any(may_be_secret(each) for each in arguments[1:]):
        return None
    rest = list(arguments[1:])
    if really:
        options = rest.index("--") if "--" in rest else len(rest)
        rest = [each for each in map(_without_prediction, rest[:options]) if each] + rest[options:]
    return shlex.join([*(begin or [os.path.basename(arguments[0])]), *rest])


def variables(given: Sequence[str]) -> list[str]:
    """The names of the variables in texts that were given as extra variables, in their order."""
    return list(dict.fromkeys(name for text in given if not text.startswith("@") for name in _ENTRY.findall(text)))


def _without_prediction(argument: str) -> str:
    """The argument, without the short options that only predict; empty where it is nothing else."""
    if any(option.startswith(argument) and argument.startswith(least) for option, least in _PREDICTS):
        return ""
    short = _SHORT.fullmatch(argument)
    if short is None:
        return argument
    left = re.sub("[CD]", "", short[1]) + short[2]
    return f"-{left}" if left else ""


def may_be_secret(argument: str) -> bool:
    """Whether an argument may hold a secret, by its form or by the names in it."""
    return bool(secret_kind(argument) or "sshpass" in argument) or any(
        names_secret(name) or _SEVERAL.search(name) for name in _ENTRY.findall(argument)
    )
