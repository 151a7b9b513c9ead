"""What follows each name of optimum-habana, from the tables of the package that rewrites programs."""

from __future__ import annotations

TITLE = "optimum-habana, class by class and argument by argument"


def page() -> str:
    """The page, under the title above."""
    from gaudi3_migration import table  # as its package is on the path once a build has begun

    return table()
