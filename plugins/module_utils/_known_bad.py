# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Releases of Python packages that no environment may have.

The trainer has the same table (``gaudi3_doctor.known_bad``); a test holds the two equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ._refusal import Refusal


@dataclass(frozen=True)
class KnownBad:
    """Releases of one package, and why they are refused."""

    package: str
    versions: tuple[str, ...]
    #: What such a release does, for use inside a sentence.
    reason: str
    #: What to install in its place.
    instead: str
    #: Who says so, and on which day.
    source: str
    date: str


#: The maintainers confirmed both versions in Lightning-AI/pytorch-lightning issue 21691. Reports differ on whether
#: pytorch-lightning, which has the same version numbers, was published with them, too.
KNOWN_BAD = (
    KnownBad(
        "lightning",
        ("2.6.2", "2.6.3"),
        "steals credentials as soon as it is imported",
        "lightning==2.6.6",
        "GHSA-w37p-236h-pfx3",
        "2026-04-30",
    ),
    KnownBad(
        "pytorch-lightning",
        ("2.6.2", "2.6.3"),
        "has the version numbers of two releases of lightning that steal credentials as soon as they are imported",
        "pytorch-lightning==2.6.6",
        "GHSA-w37p-236h-pfx3",
        "2026-04-30",
    ),
)

#: Names to ask an environment for.
PACKAGES = tuple(dict.fromkeys(bad.package for bad in KNOWN_BAD))


def plain_version(version: str) -> str:
    """A version without what makes no other release of it: 2.6.2 for v2.6.2, 0!2.06.2, 2.6.2.0 and 2.6.2+cpu."""
    public = version.strip().lower().partition("+")[0].removeprefix("v").removeprefix("0!")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", public):
        return public
    return re.sub(r"(\.0)+$", "", ".".join(part.lstrip("0") or "0" for part in public.split(".")))


def known_bad(versions: Mapping[str, str]) -> list[KnownBad]:
    """Rows of the table that packages are of; ``versions`` are by normalized name."""
    return [bad for bad in KNOWN_BAD if plain_version(versions.get(bad.package, "")) in bad.versions]


def refuse_known_bad(where: str, versions: Mapping[str, str]) -> None:
    """Refuse an environment that has a release which must not be there."""
    for bad in known_bad(versions):
        raise Refusal(
            f"{where} has {bad.package} {versions[bad.package]}, which {bad.reason} ({bad.source}, {bad.date}): remove "
            f"it, replace every credential that this machine could read, and install {bad.instead}."
        )


def refuse_known_bad_pins(option: str, versions: Mapping[str, str]) -> None:
    """Refuse a list of packages to install that names such a release."""
    for bad in known_bad(versions):
        raise Refusal(
            f"{option} has {bad.package} {versions[bad.package]}, which {bad.reason} ({bad.source}, {bad.date}): write "
            f"{bad.instead} with its hashes."
        )
