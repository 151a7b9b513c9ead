"""What can be wrong with the repository: its signature, its index, or the package sets behind a good signature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, get_args

from .deb import Package

# other-key: signed by a key that is not the published one
# expired: Valid-Until has passed
# tampered-release: the signed text was changed
# tampered-index: Packages is not what the signed Release says
# missing-package: the set lacks a package that others depend on
# unmet-depends: a package depends on another build of its neighbour, which is not there
# truncated-package: a package's file ends in the middle; its size and digest in the index are those of the whole
Fault = Literal[
    "other-key",
    "expired",
    "tampered-release",
    "tampered-index",
    "missing-package",
    "unmet-depends",
    "truncated-package",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
# The package that is missing, cut short, or asked for in another build. Most others depend on it.
BROKEN = "habanalabs-thunk"


def package_set(every: Iterable[Package], fault: Fault | None) -> list[Package]:
    """The packages that the index lists under a fault."""
    if fault == "missing-package":
        return [package for package in every if package.name != BROKEN]
    if fault == "unmet-depends":
        return [replace(package, depends=tuple(map(_next_build, package.depends))) for package in every]
    return list(every)


def pool_content(package: Package, fault: Fault | None) -> bytes:
    """What lies in the pool for a package that the index lists."""
    if fault == "truncated-package" and package.name == BROKEN:
        return package.content[: len(package.content) // 2]
    return package.content


def _next_build(depends: str) -> str:
    """``habanalabs-thunk (= 1.23.0-695)`` as ``habanalabs-thunk (= 1.23.0-696)``; any other as it is."""
    if not depends.startswith(f"{BROKEN} (= "):
        return depends
    start, _, build = depends.removesuffix(")").rpartition("-")
    return f"{start}-{int(build) + 1})"
