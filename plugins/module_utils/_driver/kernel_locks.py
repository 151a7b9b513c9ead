# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which kernels dnf 4 may install: lines of its plugin versionlock, one for each kernel that has the driver.

dnf installs no other version of a package than those that lines name. A package of which the site has a line is left to
the site. The headers (``kernel-devel``) have no line: a driver is built with them before its kernel comes. dnf5 has the
same in another file: ``kernel_locks_dnf5``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Optional

from .._release.compat import FORBIDDEN, Matrix

#: Packages without which a kernel is none. What upgrades apart from it, such as kernel-tools, is not among them.
PACKAGES = ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-modules-extra")
_KERNEL = re.compile(r"([0-9][^-]*-[^+]+)[.][a-z0-9_]+")
_LINE = re.compile(r"!?(?P<name>[a-z0-9][a-z0-9-]*?)-(?:[0-9]+:)?[0-9].*")


@dataclass(frozen=True)
class Locks:
    """The list that is to be, and which of its lines are this collection's."""

    lines: tuple[str, ...]
    ours: tuple[str, ...]
    """What is on record afterwards."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    names: tuple[str, ...]
    """Packages of which no other version comes than those that are locked here."""


def decide(
    text: str,
    installed: Collection[str],
    kernels: Sequence[str],
    system: str,
    ours: Collection[str],
    wanted: bool,
    matrix: Optional[Matrix] = None,
) -> Locks:
    """The list with the lines that are to be there.

    ``text`` is the list now, ``installed`` the packages that are there, ``kernels`` those that have the driver, or the
    running one before there is a driver, ``ours`` the lines on record.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    left_to_site = {_name(line) for line in lines if line and not line.startswith("#") and line not in ours}
    named = [name for name in PACKAGES if name in installed and name not in left_to_site] if wanted else []
    ought = [f"{name}-0:{release}.*" for name in named for release in releases(kernels, system, matrix)]
    kept = [line for line in lines if line not in ours or line in ought]
    added = [line for line in ought if line not in kept]
    removed = [line for line in lines if line in ours and line not in ought]
    return Locks(tuple(kept + added), tuple(sorted(ought)), tuple(added), tuple(removed), tuple(named))


def releases(kernels: Sequence[str], system: str, matrix: Optional[Matrix] = None) -> list[str]:
    """Versions and releases of kernels, without those that the matrix forbids and those of another kind (``+rt``)."""
    table = matrix or Matrix()
    return [match[1] for each in kernels if (match := _KERNEL.fullmatch(each)) and _may(table, system, each)]


def _name(line: str) -> str:
    """The package of a line, in one of the forms that dnf takes."""
    match = _LINE.fullmatch(line)
    return match["name"] if match else line.lstrip("!").partition(".")[0]


def _may(table: Matrix, system: str, kernel: str) -> bool:
    return table.kernel(system, kernel).level != FORBIDDEN
