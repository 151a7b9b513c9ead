# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Values that a job's user or a node wrote, by their kind; None for everything else.

JSON has numbers without bounds, and JSON of Python has more values than that. What is read here can be compared,
formatted, shown and written again without another look.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

from ._printable import LONGEST, printable

Number = Union[int, float]
#: Reads a value of one kind; None for what is none.
Kind = Callable[[object], Any]

#: The largest integer of 64 bits, and a little more than the largest number of 32-bit floating point.
LARGEST_INTEGER = 2**63 - 1
LARGEST_FLOAT = 3.5e38
#: The last second of the year 9999, after which no date can be shown.
LAST_SECOND = 253402300799
#: No number of a job needs more characters.
DIGITS = 64
#: Entries of a list or a mapping, and how deep one is looked into.
ENTRIES = 1024
DEPTH = 3


def parsed(text: str) -> object:
    """The value of a JSON text; None for what is none, or is nested too deeply.

    A number with more characters than any needs becomes no number, as turning it into one takes time without bounds.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_float)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> Number:
    return int(digits) if len(digits) <= DIGITS else math.nan


def _float(digits: str) -> float:
    return float(digits) if len(digits) <= DIGITS else math.nan


def integer(value: object) -> Optional[int]:
    """An integer of 64 bits; True and False are none."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER:
        return value
    return None


def count(value: object) -> Optional[int]:
    """An integer from 0."""
    found = integer(value)
    return found if found is not None and found >= 0 else None


def number(value: object) -> Optional[Number]:
    """A finite number of a size that 32-bit floating point has."""
    if isinstance(value, float):
        return value if abs(value) <= LARGEST_FLOAT else None
    return integer(value)


def moment(value: object) -> Optional[Number]:
    """A time in seconds since 1970."""
    found = number(value)
    return found if found is not None and 0 <= found <= LAST_SECOND else None


def truth(value: object) -> Optional[bool]:
    """True or False."""
    return value if isinstance(value, bool) else None


def text(value: object, longest: int = LONGEST) -> Optional[str]:
    """A text as one line that may be shown."""
    return printable(value, longest) if isinstance(value, str) else None


def path(value: object) -> Optional[str]:
    """A path, which may be as long as Linux has them."""
    return text(value, 4096)


def exact(value: object, longest: int = 4096) -> Optional[str]:
    """A text that can be shown as it is; None for one that would be shown otherwise."""
    return value if isinstance(value, str) and printable(value, longest) == value else None


def texts(value: object) -> Optional[list[str]]:
    """A list of texts, each as one line; what is no text in it is left out."""
    if not isinstance(value, (list, tuple)):
        return None
    return [found for each in value[:ENTRIES] if (found := path(each)) is not None]


def mapping(value: object) -> Mapping[str, Any]:
    """The entries of a mapping whose names are texts; none for what is no mapping."""
    return {name: each for name, each in value.items() if isinstance(name, str)} if isinstance(value, Mapping) else {}


def plain(value: object, depth: int = DEPTH) -> Any:
    """A value of any of these kinds, lists and mappings with them included, up to a depth; None for everything else."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return path(value)
    if isinstance(value, (int, float)):
        return number(value)
    if depth > 0 and isinstance(value, (list, tuple)):
        return [plain(each, depth - 1) for each in value[:ENTRIES]]
    if depth > 0 and isinstance(value, Mapping):
        some = list(mapping(value).items())[:ENTRIES]
        return {printable(name, 100): plain(each, depth - 1) for name, each in some}
    return None
