"""Releases of Python packages that no environment may have.

The collection has the same table (`plugins/module_utils/_known_bad.py`); a test holds the two equal.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownBad:
    """Releases of one package, and why they are refused."""

    package: str
    versions: tuple[str, ...]
    reason: str
    """What such a release does, for use inside a sentence."""
    instead: str
    """What to install in its place."""
    source: str
    """Who says so."""
    date: str
    """On which day."""


# The maintainers confirmed both versions in Lightning-AI/pytorch-lightning issue 21691. Reports differ on whether
# pytorch-lightning, which has the same version numbers, was published with them, too.
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

PACKAGES = tuple(dict.fromkeys(bad.package for bad in KNOWN_BAD))
"""Names to ask an environment for."""


def plain_version(version: str) -> str:
    """A version without what makes no other release of it: 2.6.2 for v2.6.2, 0!2.06.2, 2.6.2.0 and 2.6.2+cpu."""
    public = version.strip().lower().partition("+")[0].removeprefix("v").removeprefix("0!")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", public):
        return public
    return re.sub(r"(\.0)+$", "", ".".join(part.lstrip("0") or "0" for part in public.split(".")))


def complaint(versions: Mapping[str, str]) -> str:
    """What is wrong with an environment that has these versions, in one sentence; empty where nothing is.

    Names are normalized, as in `pytorch-lightning`.
    """
    for bad in KNOWN_BAD:
        found = versions.get(bad.package, "")
        if plain_version(found) in bad.versions:
            return (
                f"{bad.package} {found} is installed, which {bad.reason} ({bad.source}, {bad.date}): remove it, "
                f"replace every credential that this machine could read, and install {bad.instead}."
            )
    return ""


def own_versions() -> dict[str, str]:
    """Versions of these packages that this process would import."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
