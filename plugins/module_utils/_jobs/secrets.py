# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Secrets in what a job is given: its unit, its configuration and the journal of its node have all of it in plain text.

Each sentence names the variable, the word or the entry and never its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._printable import printable
from .._secret_words import is_place, names_secret, option_names_secret, secret_kind

#: How deep a configuration is looked into, which is deeper than the trainer's goes.
_DEPTH = 32


@dataclass(frozen=True)
class OptionNames:
    """What the options are called where they are given; the module's own names by default."""

    environment: str = ""
    command: str = "command"
    files: str = "environment_files"


OF_THE_ROLE = OptionNames("trainer_environment", "trainer_command", "trainer_environment_files")


def secret_problem(
    environment: object,
    command: object = (),
    configs: Optional[Mapping[str, object]] = None,
    options: OptionNames = OptionNames(),
) -> Optional[str]:
    """Why a job must not be given this, for its first secret; None where none is seen.

    ``configs`` has configurations by the names of their options. Values of another kind than expected hold none.
    """
    found = _in_environment(environment, options) or _in_command(command, options)
    return found or next((_in_config(value, name, options) for name, value in (configs or {}).items() if value), None)


def _in_environment(environment: object, options: OptionNames) -> Optional[str]:
    for key, value in environment.items() if isinstance(environment, Mapping) else ():
        name = str(key)
        # GOOGLE_APPLICATION_CREDENTIALS and OTEL_EXPORTER_OTLP_CLIENT_KEY are paths of files.
        file = name.upper().endswith(("CREDENTIALS", "CLIENT_KEY")) and is_place(str(value))
        named = names_secret(name) and not file
        kind = "" if named else secret_kind(str(value))
        if not kind and not named:
            continue
        of = f" of {options.environment}" if options.environment else ""
        return (
            f"Environment variable {printable(name, 100)!r}{of} {'holds ' + kind if kind else 'looks like a secret'}, "
            "and every user of the node can read a unit's environment: put it into a file with mode 0600 and name "
            f"that in {options.files}."
        )
    return None


def _in_command(command: object, options: OptionNames) -> Optional[str]:
    given = [str(word) for word in command] if isinstance(command, Sequence) and not isinstance(command, str) else []
    for number, word in enumerate(given):
        option = given[number - 1] if number else ""
        named = option.startswith("-") and "=" not in option and option_names_secret(option)
        named = named and not word.startswith("-") and not is_place(word)
        kind = f"a value of {option.lstrip('-')}" if named else secret_kind(word)
        if kind:
            return (
                f"Word {number + 1} of {options.command} holds {printable(kind, 100)}, and every user of the node can "
                "read a unit's command: put it as a variable into a file with mode 0600, name that in "
                f"{options.files}, and have the script read its environment."
            )
    return None


def _in_config(config: object, name: str, options: OptionNames) -> Optional[str]:
    for key, last, value in _entries(config, name):
        named = bool(value) and option_names_secret(last) and not is_place(value)
        kind = secret_kind(value) or ("what looks like a secret" if named else "")
        if kind:
            return (
                f"{printable(key, 200)} holds {kind}, and the trainer's configuration is kept in plain text on the "
                "node: take it out, put it as a variable into a file with mode 0600 and name that in "
                f"{options.files}."
            )
    return None


def _entries(value: object, key: str, last: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, str, str]]:
    """All texts of a tree of options, each with its place and the last name on the way to it."""
    if isinstance(value, str):
        yield key, last, value
    elif depth and isinstance(value, Mapping):
        for name, each in value.items():
            yield from _entries(each, f"{key}.{name}", str(name), depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            yield from _entries(each, f"{key}[{number}]", last, depth - 1)


def secret_of_arguments(arguments: Mapping[str, Any]) -> Optional[str]:
    """The same for the options of the module gaudi_train, before they are sent to a node."""
    configs = {name: arguments.get(name) for name in ("config", "node_config")}
    return secret_problem(arguments.get("environment"), arguments.get("command"), configs)
