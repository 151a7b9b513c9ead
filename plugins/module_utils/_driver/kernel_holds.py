# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which packages that bring kernels are held back, as the kernel that they would bring has no driver.

A package is free only where it offers a kernel that has its driver and that the matrix does not forbid. Where it offers
none it is held too: what it offers tomorrow would come with the distribution's next automatic upgrade, before anybody
could build a driver for it. What the site holds by itself is never lifted, so what was held here is on record.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Optional

from .._printable import few, printable
from .._refusal import Refusal
from .._release.compat import FORBIDDEN, Matrix

_HEAD = "# Managed by gaudi3.scale: packages of kernels that it has put on hold, and lifts by itself.\n"
#: A package, or a line of dnf's plugin.
_NAME = re.compile(r"[a-z0-9][A-Za-z0-9+.:_~^*-]+")


@dataclass(frozen=True)
class Bringer:
    """An installed package with which kernels come."""

    name: str
    held: bool
    offers: tuple[str, ...] = ()
    """Kernels of the version that the package manager would install; empty where it is installed already."""


@dataclass(frozen=True)
class Node:
    """What decides on one node."""

    release: str
    system: str
    """As the matrix names it, such as ``Ubuntu 24.04``."""
    built_for: Collection[str]
    """Kernels that the driver's modules are installed for."""
    bringers: Sequence[Bringer]
    ours: Collection[str] = ()
    """Packages on record as held by this collection."""


@dataclass(frozen=True)
class Decision:
    """What is to be done; nothing where both lists are empty and the record stays as it is."""

    hold: tuple[str, ...]
    lift: tuple[str, ...]
    ours: tuple[str, ...]
    """What is on record afterwards."""
    remarks: tuple[str, ...]
    """Sentences on kernels that are offered and do not come."""


def decide(node: Node, wanted: bool, matrix: Optional[Matrix] = None) -> Decision:
    """Compare; without ``wanted`` everything on record is lifted."""
    table = matrix or Matrix()
    hold, lift, ours = [], [], []
    why: dict[tuple[str, str], list[str]] = {}
    for each in node.bringers:
        reasons = {kernel: obstacle(node, kernel, table) for kernel in each.offers}
        free = not wanted or (bool(reasons) and not any(reasons.values()))
        if free and each.name in node.ours and each.held:
            lift.append(each.name)
        elif not free and (not each.held or each.name in node.ours):
            ours.append(each.name)
            hold += [] if each.held else [each.name]
        for kernel, reason in reasons.items():
            if wanted and reason:
                why.setdefault((kernel, reason), []).append(each.name)
    remarks = [f"Kernel {kernel} is offered and held back ({few(names)}): {reason}" for (kernel, reason), names in
               why.items()]  # fmt: skip
    return Decision(tuple(hold), tuple(lift), tuple(sorted(ours)), tuple(remarks))


def obstacle(node: Node, kernel: str, matrix: Matrix) -> str:
    """Why a kernel must not come, as the rest of a sentence; empty where it may."""
    verdict = matrix.kernel(node.system, kernel)
    if verdict.level == FORBIDDEN:
        return f"{verdict.why} ({verdict.source})."
    if kernel in node.built_for:
        return ""
    return (
        f"the driver of {node.release} is not built for it. Install the kernel's headers, build the driver with 'dkms "
        f"autoinstall -k {kernel}', and run the role again."
    )


def record_text(names: Collection[str]) -> Optional[str]:
    """The record's file; None where there is nothing to keep."""
    return _HEAD + "".join(f"{name}\n" for name in sorted(names)) if names else None


def read_record(text: str, path: str) -> tuple[str, ...]:
    """Packages of the record's file; ``Refusal`` where somebody else wrote it."""
    names = [line for line in text.splitlines() if line and not line.startswith("#")]
    odd = next((name for name in names if not _NAME.fullmatch(name)), None)
    if odd is not None:
        raise Refusal(
            f"{path} has the line {printable(odd, 60)!r} in the place of a package's name: correct it, or remove the "
            "file, after which what is held counts as held by the site."
        )
    return tuple(dict.fromkeys(names))
