# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which SynapseAI release supports Gaudi 3 on which operating system.

Data from the vendor's Support Matrix pages, 1.16.0 (the first with Gaudi 3) to 1.23.0. UNCONFIRMED marks a
pair that
no page was found for: neither promised nor denied. A pair that is not listed is unsupported. Patch releases
share the
line of their minor release.
"""

from __future__ import annotations

from dataclasses import dataclass

from .versions import Release

SUPPORTED = "supported"
UNCONFIRMED = "unconfirmed"
UNSUPPORTED = "unsupported"

_JAMMY = "Ubuntu 22.04"
_NOBLE = "Ubuntu 24.04"
_EL94 = "RedHat 9.4"
_EL96 = "RedHat 9.6"


@dataclass(frozen=True)
class Line:
    """One minor release: its releases with known build numbers, and its operating systems."""

    releases: tuple[str, ...]
    systems: dict[str, str]


MATRIX: dict[str, Line] = {
    "1.16": Line(("1.16.0-526",), {_JAMMY: SUPPORTED}),
    "1.17": Line(("1.17.0-495", "1.17.1-40"), {_JAMMY: SUPPORTED, _EL94: SUPPORTED}),
    "1.18": Line(("1.18.0-524",), {_JAMMY: SUPPORTED, _NOBLE: SUPPORTED, _EL94: SUPPORTED}),
    "1.19": Line(
        ("1.19.0-561", "1.19.1-26", "1.19.2-32"),
        {_JAMMY: UNCONFIRMED, _NOBLE: UNCONFIRMED, _EL94: UNCONFIRMED},
    ),
    "1.20": Line(
        ("1.20.0-543", "1.20.1-97"),
        {_JAMMY: UNCONFIRMED, _NOBLE: UNCONFIRMED, _EL94: UNCONFIRMED},
    ),
    # 1.21 is on the pages too (22.04, 24.04, RHEL 9.4), but none of its build numbers was recorded.
    "1.22": Line(
        ("1.22.0-740", "1.22.2-32"),
        {_JAMMY: SUPPORTED, _NOBLE: SUPPORTED, _EL94: SUPPORTED, _EL96: SUPPORTED},
    ),
    "1.23": Line(
        ("1.23.0-695",),
        {_JAMMY: SUPPORTED, _NOBLE: SUPPORTED, _EL94: SUPPORTED, _EL96: SUPPORTED},
    ),
    # 1.24: Ubuntu 24.04 is known from image names only, the rest from nothing; 1.24.2 from a wheel's build
    # number.
    "1.24": Line(
        ("1.24.0-1007", "1.24.1-482", "1.24.2-481"),
        {_JAMMY: UNCONFIRMED, _NOBLE: UNCONFIRMED, _EL94: UNCONFIRMED, _EL96: UNCONFIRMED},
    ),
}


def known_releases() -> list[str]:
    """Every release of the matrix, from old to new."""
    every = [release for line in MATRIX.values() for release in line.releases]
    return sorted(every, key=Release.parse)


def support(release: str, system: str) -> str:
    """Whether ``release`` is for ``system`` (``Ubuntu 22.04``): supported, unconfirmed or unsupported."""
    parsed = Release.parse(release)
    line = MATRIX[f"{parsed.major}.{parsed.minor}"]
    return line.systems.get(system, UNSUPPORTED)


def systems(release: str) -> list[str]:
    """The operating systems of a release, unconfirmed ones marked so."""
    parsed = Release.parse(release)
    line = MATRIX[f"{parsed.major}.{parsed.minor}"]
    return [name if cell == SUPPORTED else f"{name} (unconfirmed)" for name, cell in line.systems.items()]


def release_problem(release: str, system: str, accept_unsupported: bool = False) -> str:
    """One sentence on why ``release`` must not be installed on ``system``; empty where it may."""
    if release not in known_releases():
        known = ", ".join(known_releases())
        return f"SynapseAI release '{release}' is not known; synapseai_release must be one of: {known}."
    if accept_unsupported or support(release, system) != UNSUPPORTED:
        return ""
    return (
        f"SynapseAI {release} is not supported on {system}, only on {', '.join(systems(release))}; use one of these, "
        "or set synapseai_accept_unsupported_os=true to try it at your own risk."
    )


def release_caution(release: str, system: str) -> str:
    """One sentence on a pair that nothing confirms; empty on any other."""
    if support(release, system) != UNCONFIRMED:
        return ""
    return f"SynapseAI {release} on {system} is unconfirmed: no support matrix page of the vendor's was found for it."
