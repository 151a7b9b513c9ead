# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Configurations in lines whose indentation says what belongs to what, as EOS and NX-OS write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Line:
    """A line, and those that are indented below it."""

    number: int
    text: str
    below: list[Line] = field(default_factory=list)

    @property
    def location(self) -> str:
        """The line's place for a message."""
        return f"line {self.number}"

    def every(self) -> Iterator[Line]:
        """The line and all below it."""
        yield self
        for each in self.below:
            yield from each.every()


def tree(text: str) -> list[Line]:
    """The lines that are not indented, each with what belongs to it. Comments and empty lines are left out."""
    top: list[Line] = []
    open_lines: list[tuple[int, Line]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        words = raw.strip()
        if not words or words.startswith(("!", "#")):
            continue
        depth = len(raw) - len(raw.lstrip())
        while open_lines and open_lines[-1][0] >= depth:
            open_lines.pop()
        line = Line(number, " ".join(words.split()))
        (open_lines[-1][1].below if open_lines else top).append(line)
        # Deeper than any configuration goes, a line stays beside its neighbours.
        if len(open_lines) < 20:
            open_lines.append((depth, line))
    return top


def joined(top: list[Line]) -> list[Line]:
    """The lines, with an interface that stands there twice once: what is below both belongs to it, the later last."""
    first: dict[str, Line] = {}
    found = []
    for line in top:
        known = first.setdefault(line.text, line) if line.text.startswith("interface ") else line
        if known is line:
            found.append(line)
        else:
            known.below.extend(line.below)
    return found
