# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The arguments that a service is started with, out of its unit and its files of variables, as systemd reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

#: The variable that Debian's units hand over as arguments.
VARIABLE = "ARGS"
# A value may go on behind a backslash at the end of a line, and quotes may hold several lines.
_ASSIGNMENT = re.compile(
    r"""^[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*((?:\\.|'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|[^\\'"\n])*)""", re.M | re.S
)
_PIECE = re.compile(r"""\\(.)|'([^']*)'?|"((?:\\.|[^"\\])*)"?|([^\\'"]+)""", re.S)
_COMMENT = re.compile(r"^[ \t]*[#;].*\n?", re.M)
_SPLIT = re.compile(r"\\\n[ \t]*")
_NAMED = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: Characters before an executable in a unit.
_PREFIXES = "@-:+!|"


def variables(text: str) -> dict[str, str]:
    """The variables of a file for ``EnvironmentFile=``; of several lines for one name the last counts."""
    return {match[1]: _value(match[2]) for match in _ASSIGNMENT.finditer(_COMMENT.sub("", text))}


def _value(written: str) -> str:
    """A value without its quotes."""

    def piece(match: re.Match[str]) -> str:
        escaped, single, double, plain = match.groups()
        if escaped is not None:
            return "" if escaped == "\n" else str(escaped)
        if double is not None:
            return re.sub(r'\\(["\\`$])', r"\1", double.replace("\\\n", ""))
        return str(single if single is not None else plain)

    return _PIECE.sub(piece, written).strip()


def words_of(value: str) -> list[str]:
    """A value as the words that a unit's ``$NAME`` makes of it."""
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def command_of(paths: Iterable[str], given: Mapping[str, str]) -> list[str]:
    """The last command of a unit and its drop-ins, its words expanded; empty where they have none.

    ``given`` are the variables of the packaged unit, to which a drop-in may refer. Where a drop-in brings variables
    alone, the command is that of the packaged unit, and its program is empty.
    """
    known, command = dict(given), ""
    for path in paths:
        for line in _SPLIT.sub(" ", _COMMENT.sub("", _text(path))).splitlines():
            key, _equals, value = (part.strip() for part in line.partition("="))
            if key == "ExecStart":
                command = value
            elif key == "Environment":
                known.update(
                    {name: each for name, equals, each in (word.partition("=") for word in words_of(value)) if equals}
                )
            elif key == "EnvironmentFile":
                known.update(variables(_text(value.lstrip("-"))))
            if key.startswith("Environment") and not command:
                command = f"- ${VARIABLE}"
    found = words_of(command)
    return (
        [found[0].lstrip(_PREFIXES), *(each for word in found[1:] for each in _expanded(word, known))] if found else []
    )


def _expanded(word: str, known: Mapping[str, str]) -> list[str]:
    alone = re.fullmatch(r"\$(\w+)", word)
    if alone:
        return words_of(known.get(alone[1], ""))
    return [_NAMED.sub(lambda match: known.get(match[1] or match[2], ""), word)]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
