# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The trainer's own list of pinned packages, with the hashes of their files: what an index may give a node.

The list is in the trainer's wheel, so that the version of the trainer says which versions come with it.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Mapping

from .._refusal import Refusal
from .._wheels import Requirement, normal

#: Where the list is, in the wheel and in the folder that it is unpacked into.
PLACE = "gaudi3_scale/requirements.txt"
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==[A-Za-z0-9.+!_-]+((?: --hash=sha256:[0-9a-f]{64})+)")
_COMPLAINT = re.compile(r"(\S+) \S+ (?:requires|has requirement) ([A-Za-z0-9][A-Za-z0-9._-]*)")


def read_list(place: str) -> str:
    """The list of a wheel, or of the folder of one that is unpacked; Refusal where there is none."""
    try:
        if os.path.isdir(place):
            with open(os.path.join(place, PLACE), encoding="utf-8") as stream:
                return stream.read()
        with zipfile.ZipFile(place) as archive:
            return archive.read(PLACE).decode("utf-8")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        raise Refusal(
            f"The trainer in {place} has no {PLACE}, by which trainer_dependencies=index installs: take a wheel of "
            "this collection's trainer, or install what it requires and set trainer_dependencies to preinstalled."
        ) from None


def hashed_pins(text: str) -> dict[str, str]:
    """Lines for pip by name, each with its hashes; Refusal for a line without, and for torch."""
    found: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        pin = " ".join(line.split())
        if not pin or pin.startswith("#"):
            continue
        match = _PIN.fullmatch(pin)
        if match is None or normal(match.group(1)) == "torch":
            raise Refusal(
                f"{PLACE} of the trainer's wheel has the line '{pin[:60]}': write each as name==version with "
                "--hash=sha256:..., and torch, which only the vendor may bring, not at all."
            )
        found[normal(match.group(1))] = pin
    return found


def pins_for(place: str, requirements: Iterable[str]) -> dict[str, str]:
    """The list of a trainer as lines for pip by name; Refusal where it does not have these requirements of it."""
    pins = hashed_pins(read_list(place))
    unlisted = sorted(set(names_of(requirements)) - set(pins))
    if unlisted:
        raise Refusal(
            f"{PLACE} of the trainer's wheel has no {', '.join(unlisted)}, which the trainer requires: install what is "
            "missing, and set trainer_dependencies to preinstalled."
        )
    return pins


def names_of(requirements: Iterable[str]) -> list[str]:
    """Names of the packages that are required."""
    return [wanted.name for wanted in map(Requirement.parse, requirements) if wanted is not None]


def complained_of(check: str, pins: Mapping[str, str]) -> list[str]:
    """Names of the list of which ``pip check`` says that another one of the list cannot do with them as they are."""
    pairs = (match.groups() for match in map(_COMPLAINT.match, check.splitlines()) if match)
    return sorted({normal(wanted) for by, wanted in pairs if normal(by) in pins and normal(wanted) in pins})


def other_file(err: str) -> str:
    """The pin of which pip says that a file has another hash than the list; empty where it says nothing of it."""
    match = re.search(r"DO NOT MATCH THE HASHES.*\n\s+(\S+) from ", err)
    return match.group(1) if match else ""
