"""The reference pages, which are generated from the code and never committed."""

from __future__ import annotations


def pages() -> dict[str, str | bytes]:
    """Each generated file by its path below the site's source, such as ``reference/variables.md``."""
    return {}


def shelf() -> list[tuple[str, str, str]]:
    """The generated pages of the sidebar's shelf "reference", in its order: path below the source, title, what for."""
    return []
