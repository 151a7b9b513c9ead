# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Text of a node, a job or a bucket as one line that may be shown on a terminal or a page."""

from __future__ import annotations

from collections.abc import Sequence

#: No message of the collection needs more characters of a foreign text.
LONGEST = 1000


def printable(value: object, longest: int = LONGEST) -> str:
    r"""The value as text of one line: what a terminal would act on is written as an escape, such as ``\x1b``.

    That is every character that Python does not call printable: control characters and line ends, characters that
    change the direction of writing, and lone surrogates. Of what is longer than ``longest``, the rest is ``...``.
    """
    text = value if isinstance(value, str) else str(value)
    cut = text[: longest + 1]
    if len(cut) <= longest and cut.isprintable():
        return cut
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in cut)
    return shown if len(cut) <= longest and len(shown) <= longest else shown[: longest - 3] + "..."


def few(names: Sequence[str], most: int = 6) -> str:
    """The names for a message, the first few of them spelled out."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
