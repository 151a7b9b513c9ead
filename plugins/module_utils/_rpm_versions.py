# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which of two versions is the later one, as rpm orders them."""

from __future__ import annotations

import re
from itertools import zip_longest


def compare_rpm(left: str, right: str) -> int:
    """Below, at or above zero as the left version is the earlier, the same or the later one.

    A release counts where both have one.
    """
    one, other = _parts(left), _parts(right)
    if one[0] != other[0]:
        return -1 if one[0] < other[0] else 1
    return _part(one[1], other[1]) or (_part(one[2], other[2]) if one[2] and other[2] else 0)


def _parts(version: str) -> tuple[tuple[int, str], str, str]:
    epoch, colon, rest = version.partition(":")
    name, _dash, release = (rest if colon else version).partition("-")
    return _number(epoch if colon else ""), name, release


def _number(digits: str) -> tuple[int, str]:
    """A number as it is ordered: a repository may have any, of which Python reads none of thousands of digits."""
    found = digits.lstrip("0")
    return len(found), found


def _part(left: str, right: str) -> int:
    """Segments of digits and of letters. A tilde comes before the end, a caret after it but before all else."""
    if left == right:
        return 0
    pattern = re.compile(r"~|\^|[0-9]+|[A-Za-z]+")
    for one, other in zip_longest(pattern.findall(left), pattern.findall(right), fillvalue=""):
        if one == other:
            continue
        for mark in "~^":
            if mark in (one, other):
                last = "" in (one, other) and mark == "^"  # a caret is later than the end of the other
                return (1 if last else -1) if one == mark else (-1 if last else 1)
        if not one or not other:
            return 1 if one else -1
        if one.isdigit() != other.isdigit():
            return 1 if one.isdigit() else -1
        keys = (_number(one), _number(other)) if one.isdigit() else ((0, one), (0, other))
        if keys[0] != keys[1]:
            return -1 if keys[0] < keys[1] else 1
    return 0
