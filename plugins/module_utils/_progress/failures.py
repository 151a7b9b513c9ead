# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What failed in a run: the sentence in the answer of a task, and the same failure of many hosts as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .screen import folded, shown_lines
from .unreachable import Cause

#: Messages that say nothing; what the program printed does.
_EMPTY = (
    *("non-zero return code", "module failure", "one or more items failed", "all items completed"),
    "result deserialization failed",
)
#: In an item of a loop that failed; ansible-core 2.21 leaves out ``failed`` itself.
_SIGNS = ("failed", "unreachable", "exception", "rc")
_HIDDEN = "what it answered is hidden, as it may hold a secret (no_log)"
#: The last lines of a program's output that are shown, and how many sentences of a loop are.
_TAIL, _ITEMS = 5, 10


def sentences(answer: Mapping[str, Any]) -> list[str]:
    """The lines that say why a task failed; nothing else of its answer."""
    if answer.get("censored"):
        return [_HIDDEN]
    items = answer.get("results")
    if isinstance(items, (list, tuple)):
        failed = [each for each in items if isinstance(each, Mapping) and any(each.get(sign) for sign in _SIGNS)]
        lines = list(dict.fromkeys(line for each in failed for line in sentences(each)))
        if lines:
            return lines[:_ITEMS]
    found = [line for line in shown_lines(answer.get("msg") or "") if line.strip()]
    if not found or any(empty in found[0].lower() for empty in _EMPTY):
        found += _printed(answer)
    return found or ["it failed and says nothing: -v shows its whole answer"]


def _printed(answer: Mapping[str, Any]) -> list[str]:
    """The end of what a program printed: its errors, else its output."""
    for name in ("stderr", "module_stderr", "exception", "stdout", "module_stdout"):
        lines = [line for line in shown_lines(answer.get(name) or "") if line.strip()]
        if lines:
            return lines[-_TAIL:]
    return []


@dataclass(frozen=True)
class Failure:
    """A task that failed on a host, or a host that does not answer (``cause``)."""

    host: str
    task: str
    lines: tuple[str, ...]
    cause: Optional[Cause] = None
    phase: str = ""

    @property
    def kind(self) -> tuple[str, ...]:
        """The same for hosts with the same failure; their own names and addresses aside."""
        if self.cause is not None:
            return (self.phase, *(each.replace(self.host, "*") for each in self.cause.group))
        return (self.phase, self.task, *(line.replace(self.host, "*") for line in self.lines))

    def is_about(self, host: str) -> bool:
        """Whether it came up on a host, or names it."""
        return host == self.host or bool(re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", " ".join(self.lines)))

    def heading(self) -> str:
        """What it is, without the hosts."""
        return f"does not answer: {self.cause.kind}" if self.cause is not None else self.task


def gathered(failures: Iterable[Failure]) -> list[list[Failure]]:
    """Failures of the same kind together, in the order of the first of each; each host once."""
    found: dict[tuple[str, ...], dict[str, Failure]] = {}
    for failure in failures:
        found.setdefault(failure.kind, {}).setdefault(failure.host, failure)
    return [list(each.values()) for each in found.values()]


def first_lines(failure: Failure, columns: int) -> list[str]:
    """What is shown when a failure comes up: the host, the task and the sentence."""
    lines = folded(f"{failure.host}: {failure.heading()}", columns, "FAILED  ", " " * 8)
    return lines + _body(failure.lines, columns, " " * 8)


def last_lines(group: Sequence[Failure], columns: int) -> list[str]:
    """The same at the end of a run, for all hosts that it came up on; and the command to type next."""
    failure = group[0]
    where = f"  {failure.phase}: " if failure.phase else "  "
    lines = folded(failure.heading(), columns, where, " " * 4)
    lines += folded(f"on {', '.join(each.host for each in group)}", columns, " " * 4, " " * 4)
    # What is said of a host that does not answer names its address.
    of = f"{failure.host}: " if failure.cause is not None and len(group) > 1 else ""
    lines += _body([of + failure.lines[0], *failure.lines[1:]], columns, " " * 4)
    if failure.cause is not None and failure.cause.command:
        lines.append(f"    {failure.cause.command}")
    return lines


def _body(lines: Iterable[str], columns: int, indent: str) -> list[str]:
    return [shown for line in lines for shown in folded(line, columns, indent, indent)]
