"""Where a value of the configuration came from: the file, the command line, or both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LINE = "on the command line"


@dataclass
class Origins:
    """What the file says, and the dotted keys that were given behind the command."""

    path: str
    """The file's path; empty where there is none."""
    file: Mapping[str, Any] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def of(self, key: str) -> str:
        """``in FILE`` or ``on the command line``: who gave the value of a key, or of a section."""
        if any(key == each or key.startswith(f"{each}.") for each in self.keys):
            return LINE
        if any(each.startswith(f"{key}.") for each in self.keys) and not self._in_file(key):
            return LINE
        return f"in {self.path}" if self.path else "in the configuration"

    def of_sentence(self, section: str, sentence: str, names: Iterable[str]) -> str:
        """The same for a sentence on keys that do not go together; ``names`` are the section's keys."""
        named = [f"{section}.{name}" if section else name for name in names if re.search(rf"\b{name}\b", sentence)]
        dotted = re.findall(r"\b\w+(?:\.\w+)+", sentence)
        given = [key for key in {*named, *dotted} if self.of(key) == LINE or self._in_file(key)]
        found = sorted({self.of(key) for key in given})
        return " and ".join(found) if found else self.of(section)

    def _in_file(self, key: str) -> bool:
        return _there(self.file, key.split("."))


def _there(values: Any, parts: Sequence[str]) -> bool:
    for part in parts:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def opening(where: str) -> str:
    """The beginning of a sentence."""
    return where[:1].upper() + where[1:]
