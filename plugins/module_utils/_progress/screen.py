# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Lines for a screen of some columns: text is folded between words, and what has to be typed is never cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .._printable import LONGEST, printable

#: The most that is shown of one line of a message.
MOST = 4 * LONGEST
#: A word, or words in quotes, such as a command in the middle of a sentence.
_PIECE = re.compile(r"\S*(?<![\w])'[^'\n]+'(?!\w)\S*|\S*`[^`\n]+`\S*|\S+")
#: Lines that are a command as a whole.
_COMMAND = re.compile(
    r"\s*(?:sudo |export |cd |ansible\S* |gaudi3-\S+ |ssh\S* |curl |ping |journalctl |systemctl |python3? |pip |make )"
)
#: A character that is written as an escape takes this many at most.
_ESCAPED = 10


def is_command(line: str) -> bool:
    """Whether a line is one that a reader types."""
    return bool(_COMMAND.match(line))


def folded(text: str, columns: int, first: str = "", others: str = "") -> list[str]:
    """The text in lines of this many characters, begun with ``first`` and ``others``.

    A piece that is longer than a line, such as an address or a command in quotes, has a line of its own and is whole.
    """
    if is_command(text):
        return [first + text]
    lines, line, begun = [], first, False
    for piece in _PIECE.findall(text):
        if begun and len(line) + 1 + len(piece) > columns:
            lines.append(line)
            line, begun = others, False
        line += f" {piece}" if begun else piece
        begun = True
    return [*lines, line] if begun or not lines else lines


def shown_lines(value: object) -> Iterator[str]:
    """The lines of a message, each as text that a terminal only shows."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from shown_lines(each)
        return
    text = value if isinstance(value, str) else str(value)
    for line in text.splitlines() or [""]:
        yield printable(line.expandtabs(4), MOST)


def uncut(line: str) -> str:
    """A line of a file as text that a terminal only shows, however long it is."""
    return "\t".join(printable(part, _ESCAPED * len(part) + 3) for part in line.split("\t"))


def safe_diff(diff: Any) -> Any:
    """The differences of a task, of which each text is one that a terminal only shows; in full."""
    if isinstance(diff, str):
        return "".join(uncut(line[:-1]) + "\n" if line.endswith("\n") else uncut(line) for line in _kept(diff))
    if isinstance(diff, (list, tuple)):
        return [safe_diff(each) for each in diff]
    if isinstance(diff, dict):
        return {key: safe_diff(value) for key, value in diff.items()}
    return diff


def _kept(text: str) -> list[str]:
    """Its lines with their ends; of the characters that end a line for Python, only the one that does in a file."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def clock(seconds: float) -> str:
    """A duration as ``4:05`` or ``1:04:05``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def roughly(seconds: float) -> str:
    """A duration that is only estimated: ``40 s``, ``12 min``, ``2 h 10 min``."""
    if seconds < 55:
        return f"{max(5, 5 * round(seconds / 5))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(5 * round(minutes / 5), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
