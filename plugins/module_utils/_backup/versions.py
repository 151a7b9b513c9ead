# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a program reads the data that another version of it has left, and what to do where it does not."""

from __future__ import annotations

import re

#: Releases of Slurm in their order. What is later is not known here, and is not refused.
SLURM = ("20.02", "20.11", "21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05")
#: From this one on, each reads what the three releases before have left; earlier ones two (slurm.schedmd.com/upgrades).
_THREE_SINCE = "24.11"
#: Items whose program is of Slurm, which alone refuses what is too old. The others take it over when they start.
_OF_SLURM = ("slurm-state", "slurm-accounting")


def older(installed: str, wanted: str, parts: int = 2) -> bool:
    """Whether a program is older than the one whose data it is to read; False where one is not known.

    ``parts`` is how many numbers of a version count.
    """
    ours, theirs = (re.findall(r"\d+", each)[:parts] for each in (installed, wanted))
    return bool(ours and theirs) and [*map(int, ours)] < [*map(int, theirs)]


def refusal(item: str, program: str, installed: str, wanted: str) -> str:
    """Why this machine's version may not read the data of that in a backup, and the way; empty where it may."""
    if older(installed, wanted):
        return (
            f"the backup of {item} is of {program} {wanted}, and this machine has {installed}, which may not read it: "
            "install that version or a later one first"
        )
    ours, theirs = _release(installed), _release(wanted)
    if item not in _OF_SLURM or ours not in SLURM or theirs not in SLURM or theirs in _read_by(ours):
        return ""
    between = [each for each in SLURM if theirs in _read_by(each)][-1]
    return (
        f"the backup of {item} is of {program} {wanted}, and {installed} on this machine reads what "
        f"{_read_by(ours)[0]} and later have left: restore it where Slurm {between} is, start that, and upgrade from "
        "there"
    )


def server_refusal(item: str, installed: str, wanted: str) -> str:
    """Why this machine's database server may not read the dump of another one, and the way; empty where it may.

    Within one series, too, later versions of mariadb-dump have written what earlier ones cannot read: all three numbers
    count.
    """
    ours, theirs = (each.partition(" ")[0] for each in (installed, wanted))
    if ours and theirs and ours != theirs:
        return (
            f"the backup of {item} is a dump of {wanted}, and this machine has {installed}: restore it where {theirs} "
            "is"
        )
    if not older(installed, wanted, 3):
        return ""
    return (
        f"the backup of {item} is a dump of {wanted}, and this machine has {installed}, which may not read it: install "
        "that version or a later one first"
    )


def _release(version: str) -> str:
    found = re.match(r"\d+\.\d+", version)
    return found.group() if found else ""


def _read_by(release: str) -> tuple[str, ...]:
    """The releases whose data one reads, its own among them."""
    place = SLURM.index(release)
    before = 3 if place >= SLURM.index(_THREE_SINCE) else 2
    return SLURM[max(0, place - before) : place + 1]
