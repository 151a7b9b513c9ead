"""What a source of documents gives, and where in it that is."""

from __future__ import annotations

from dataclasses import dataclass

Cursor = list[int]
"""A position between two pieces; a plain list, as it is kept in a JSON file."""
START: Cursor = [0, 0, 0]


@dataclass(frozen=True, slots=True)
class Piece:
    """A document, or a part of a long one that ends at a line's end."""

    text: bytes | str
    ends: bool
    """Nothing of its document comes after it."""
    after: Cursor
