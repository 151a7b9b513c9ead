# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a record is as it was written, and which line says that it is not.

What nobody can tell from the file alone is whether its last lines are missing, or its very last one was changed: for
that, keep the last hash elsewhere and ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .chain import START, digest, parse

SHORT = 12


class Verdict(NamedTuple):
    """What was found; ``problem`` is a sentence, empty where the chain holds."""

    lines: int
    head: str
    """Hash of the last line; ``START`` where there is none."""
    problem: str
    notes: tuple[str, ...] = ()


def verify(lines: Iterable[bytes], anchor: str = "") -> Verdict:
    """Follow the chain to its first broken link. With an anchor, a line has to have that hash."""
    number, head, anchored = 0, START, 0
    unread: list[int] = []
    notes: list[str] = []

    def broken(sentence: str) -> Verdict:
        return Verdict(number, head, sentence, tuple(notes))

    for raw in lines:
        number += 1
        line = raw[:-1] if raw.endswith(b"\n") else raw
        record = parse(line)
        if record is None:
            if not raw.endswith(b"\n"):
                return broken(_cut(number, len(line)))
        else:
            found, expected = str(record["previous"]), head
            cut = record.get("after_cut") or []
            if cut != unread:
                return broken(_unread(number, unread))
            if record["n"] != number or found != expected:
                return broken(_difference(number, int(record["n"]), expected, found))
            for before, length in enumerate(unread, number - len(unread)):
                notes.append(f"Line {before} was cut after {length} bytes: its writer was killed, the next went on.")
            if not raw.endswith(b"\n"):
                notes.append(f"Line {number} is whole but for its end: its writer was killed.")
        unread, head = [*unread, len(line)] if record is None else [], digest(line)
        anchored = number if head == anchor else anchored
    if unread:
        first = number - len(unread) + 1
        return broken(f"Line {first}: expected a record, found {unread[0]} bytes that are none: it was changed or cut.")
    if anchor and anchor != START and not anchored:
        return broken(
            f"None of the {number} lines has the hash {anchor[:SHORT]}...: expected the line that was the last when "
            "it was noted, found none: the end was cut off, or that line was changed."
        )
    if anchor:
        notes.append(f"{number - anchored} lines were added since the hash {anchor[:SHORT]}... was noted.")
    return Verdict(number, head, "", tuple(notes))


def _cut(number: int, size: int) -> str:
    return (
        f"Line {number} is cut after {size} bytes: expected a whole record, found a part: its writer was killed, or "
        "the file was shortened. The next writer leaves it there and goes on behind it."
    )


def _unread(number: int, found: list[int]) -> str:
    if not found:
        return f"Line {number}: expected a cut line before it, as it says, found a whole one: lines were changed."
    return (
        f"Line {number - len(found)}: expected a record, found {found[0]} bytes that are none, and the writer of line "
        f"{number} did not find it so: it was changed after it was written."
    )


def _difference(number: int, found_number: int, expected: str, found: str) -> str:
    where = f"Line {number}: expected number {number} behind {expected[:SHORT]}..., "
    what = f"found number {found_number} behind {found[:SHORT]}...: "
    if found_number == number:
        return (
            f"{where}{what}line {number - 1} was changed after it was written."
            if number > 1
            else (f"{where}{what}the lines before it are missing.")
        )
    if found_number > number:
        return f"{where}{what}{found_number - number} lines before it are missing, or the lines are in another order."
    return f"{where}{what}lines were put in, or are in another order."
