"""What walks.yml says: on which machine the blocks of a page are run, and what a reader's values stand for there."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .markdown import RUN, Block, logical_lines

PLAN = Path(__file__).with_name("walks.yml")
KINDS = ("checkout", "trainer", "aws", "ibm", "archive", "cluster")
"""The machines on which walks go, the cheapest first."""
CHEAP = ("checkout", "trainer")


@dataclass(frozen=True)
class Walk:
    """How the blocks of one page are run; walks.yml explains the keys."""

    page: str
    kind: str
    minutes: float = 20
    is_long: bool = False
    before: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    replace: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    """What values are on every machine of its kind."""
    exits: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    background: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    is_last: bool = False
    is_fresh: bool = False
    has_inventory: bool = True
    has_cards: bool = False

    def replaced(self, text: str) -> str:
        """A block with the values of this machine in the place of the reader's."""
        for name, value in {**self.shared, **self.replace}.items():
            text = text.replace(name, value)
        return text

    def shell(self, code: str) -> str:
        """The shell that runs a block of commands."""
        lines = re.sub(r"\\\n", "\0", self.replaced(code)).splitlines()
        return "\n".join(self._line(line.replace("\0", "\\\n")) for line in lines) + "\n"

    def _line(self, line: str) -> str:
        typed = " ".join(logical_lines(line))
        if typed in self.exits:
            line = f"{typed} && false || test $? -eq {self.exits[typed]}"
        if typed in self.background:
            # Ended once it is seen to work, as a reader does with Ctrl+C.
            begun = f"until {self.background[typed]}; do kill -0 $walk_job; sleep 0.2; done"
            line = f"{typed} & walk_job=$!\n{begun}\nkill $walk_job; wait $walk_job || :"
        return f"{line}\n{self.after[typed]}" if typed in self.after else line

    def test_of(self, block: Block) -> str:
        """The test that runs a block instead, which is named by its first command; empty where this walk does."""
        lines = logical_lines(block.code)
        return self.elsewhere.get(lines[0], "") if lines else ""

    def unused(self, blocks: list[Block]) -> list[str]:
        """What it says about commands and values that its page does not have."""
        run = [block for block in blocks if block.language in RUN]
        typed = {line for block in run for line in logical_lines(self.replaced(block.code))}
        code = "\n".join(block.code for block in blocks)
        lines = [line for line in [*self.exits, *self.after, *self.background] if line not in typed]
        first = {line for block in run for line in logical_lines(block.code)[:1]}
        lines += [line for line in self.elsewhere if line not in first]
        return lines + [name for name in self.replace if name not in code]


@dataclass(frozen=True)
class Plan:
    """All of walks.yml."""

    kinds: Mapping[str, str]
    replace: Mapping[str, Mapping[str, str]]
    marked_at_most: int
    pages: Mapping[str, Mapping[str, Any]]

    def walk(self, page: str) -> Walk:
        """That of a page, by its own entry and the first pattern that fits its name."""
        given = dict(self.pages.get(page, {}))
        kind = given.pop("kind", None) or next(
            (kind for pattern, kind in self.kinds.items() if fnmatch.fnmatch(page, pattern)), ""
        )
        return Walk(
            page,
            kind,
            is_long=given.pop("long", False),
            is_last=given.pop("last", False),
            is_fresh=given.pop("fresh", False),
            has_inventory=given.pop("inventory", True),
            has_cards=given.pop("cards", False),
            shared=self.replace.get(kind, {}),
            **given,
        )


def read(path: Path = PLAN) -> Plan:
    """The plan of a file."""
    return Plan(**yaml.safe_load(path.read_text(encoding="utf-8")))
