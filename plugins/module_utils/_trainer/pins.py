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

from .._known_bad import refuse_known_bad_pins
from .._pip import Pin, read_pins
from .._printable import printable
from .._refusal import Refusal
from .._wheels import Requirement, normal

#: Where the list is, in the wheel and in the folder that it is unpacked into.
PLACE = "gaudi3_scale/requirements.txt"
_COMPLAINT = re.compile(r"(\S+) \S+ (?:requires|has requirement) ([A-Za-z0-9][A-Za-z0-9._-]*)")


def read_list(path: str) -> str:
    """The list of a wheel, or of the folder of one that is unpacked; Refusal where there is none."""
    try:
        if os.path.isdir(path):
            with open(os.path.join(path, PLACE), encoding="utf-8") as stream:
                return stream.read()
        with zipfile.ZipFile(path) as archive:
            return archive.read(PLACE).decode("utf-8")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        raise Refusal(
            f"The trainer in {path} has no {PLACE}, by which trainer_dependencies=index installs: take a wheel of "
            "this collection's trainer, or install what it requires and set trainer_dependencies to preinstalled."
        ) from None


def hashed_pins(text: str) -> dict[str, Pin]:
    """Pins by name, each with its hashes; Refusal for a line without, for torch, and for a release that does harm."""
    found = read_pins(text, _line_refusal)
    if "torch" in found:
        raise _line_refusal(found["torch"].line)
    refuse_known_bad_pins(f"{PLACE} of the trainer's wheel", {pin.name: pin.version for pin in found.values()})
    return found


def _line_refusal(line: str) -> Refusal:
    return Refusal(
        f"{PLACE} of the trainer's wheel has the line '{printable(line[:60])}': write each as name==version with "
        "--hash=sha256:..., and torch, which only the vendor may bring, not at all."
    )


def pins_for(path: str, requirements: Iterable[str]) -> dict[str, Pin]:
    """The list of a trainer by name; Refusal where it does not have these requirements of it."""
    pins = hashed_pins(read_list(path))
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


def complained_of(check: str, pins: Mapping[str, Pin]) -> list[str]:
    """Names of the list of which ``pip check`` says that another one of the list cannot do with them as they are."""
    pairs = (match.groups() for match in map(_COMPLAINT.match, check.splitlines()) if match)
    return sorted({normal(wanted) for by, wanted in pairs if normal(by) in pins and normal(wanted) in pins})
