# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which SynapseAI releases there are, with which PyTorch, for which operating systems and cards.

Releases are those of the package index's wheel habana-pyhlml, whose build is the release's, from 1.16 on, the first
with Gaudi 3. Systems and PyTorch are from the vendor's Support Matrix pages of the releases that ``pages`` names;
1.24.1's is known from a quotation of 2026-09-25. A pair of which no page was found is UNCONFIRMED: neither promised
nor denied.
"""

from __future__ import annotations

from dataclasses import dataclass

from .versions import Release

SUPPORTED = "supported"
UNCONFIRMED = "unconfirmed"
UNSUPPORTED = "unsupported"

#: The oldest PyTorch that the trainer takes (``trainer/pyproject.toml``).
TRAINER_TORCH = "2.9"

#: Generations of cards that later releases do not drive, by the first release without them.
_LAST_OF_GENERATION = {"gaudi": Release(1, 22, 0, 0)}

_JAMMY = "Ubuntu 22.04"
_NOBLE = "Ubuntu 24.04"
_EL94 = "RedHat 9.4"
_EL96 = "RedHat 9.6"
#: Families of systems that a minor release of which nothing is known may be for.
_FAMILIES = ("Ubuntu", "RedHat")


@dataclass(frozen=True)
class Line:
    """Releases that share operating systems and PyTorch."""

    releases: tuple[str, ...]
    systems: tuple[str, ...]
    #: Null where no source says it.
    torch: str | None
    #: Releases of which the vendor's page was read.
    pages: tuple[str, ...] = ()


LINES = (
    Line(("1.16.0-526", "1.16.1-7", "1.16.2-2"), (_JAMMY,), "2.2.2", ("1.16.0-526",)),
    Line(("1.17.0-495", "1.17.1-40"), (_JAMMY, _EL94), "2.3.1", ("1.17.0-495", "1.17.1-40")),
    Line(("1.18.0-524",), (_JAMMY, _NOBLE, _EL94), "2.4.0", ("1.18.0-524",)),
    Line(("1.19.0-561", "1.19.1-26", "1.19.2-32"), (_JAMMY, _NOBLE, _EL94), "2.5.1"),
    Line(("1.20.0-543", "1.20.1-97"), (_JAMMY, _NOBLE, _EL94), "2.6.0"),
    Line(
        ("1.21.0-555", "1.21.1-16", "1.21.2-76", "1.21.3-57", "1.21.4-3", "1.21.5-6"),
        (_JAMMY, _NOBLE, _EL94),
        "2.6.0",
        ("1.21.0-555",),
    ),
    Line(("1.22.0-740", "1.22.1-6", "1.22.2-32"), (_JAMMY, _NOBLE, _EL94, _EL96), "2.7.1", ("1.22.0-740",)),
    Line(("1.23.0-695",), (_JAMMY, _NOBLE, _EL94, _EL96), "2.9.0", ("1.23.0-695",)),
    Line(("1.24.0-1007",), (_JAMMY, _NOBLE, _EL94, _EL96), "2.10.0"),
    Line(("1.24.1-482",), (_JAMMY, _NOBLE, _EL96), "2.11.0", ("1.24.1-482",)),
    Line(("1.24.2-481",), (_JAMMY, _NOBLE, _EL96), None),
)
_BY_RELEASE = {release: line for line in LINES for release in line.releases}


def known_releases() -> list[str]:
    """Every release of the matrix, from old to new."""
    return sorted(_BY_RELEASE, key=Release.parse)


def torch_version(release: str) -> str | None:
    """The PyTorch that a release brings, null where it is not known."""
    return _BY_RELEASE[release].torch if release in _BY_RELEASE else None


def support(release: str, system: str) -> str:
    """Whether ``release`` is for ``system`` (``Ubuntu 22.04``): supported, unconfirmed or unsupported."""
    names = _systems(release)
    if system not in names and system.partition(" ")[0] not in names:
        return UNSUPPORTED
    return SUPPORTED if release in _BY_RELEASE and release in _BY_RELEASE[release].pages else UNCONFIRMED


def _systems(release: str) -> tuple[str, ...]:
    """Systems of a release; of one that is not known those of its minor release, or whole families."""
    if release in _BY_RELEASE:
        return _BY_RELEASE[release].systems
    minor = _minor(release)
    known = [each for each in known_releases() if _minor(each) == minor]
    return _BY_RELEASE[known[-1]].systems if known else _FAMILIES


def _minor(release: str) -> tuple[int, int]:
    parsed = Release.parse(release)
    return parsed.major, parsed.minor


def release_problem(
    release: str,
    system: str,
    accept_unsupported: bool = False,
    accept_unknown: bool = False,
    generation: str | None = None,
) -> str:
    """One sentence on why ``release`` must not be installed on ``system`` and cards; empty where it may."""
    try:
        parsed = Release.parse(release)
    except ValueError as error:
        return str(error)
    if release not in _BY_RELEASE and not accept_unknown:
        newest = ", ".join(known_releases()[:-5:-1])
        return (
            f"SynapseAI release '{release}' is not known to this collection; take a known one (the newest are "
            f"{newest}), or set synapseai_accept_unknown_release=true, and the repository's index decides whether it "
            "exists."
        )
    first_without = _LAST_OF_GENERATION.get(generation or "")
    if first_without and parsed >= first_without:
        last = [each for each in known_releases() if Release.parse(each) < first_without][-1]
        return (
            f"The cards are first-generation Gaudi, which SynapseAI {release} does not drive: the last release for "
            f"them is of {'.'.join(map(str, _minor(last)))}; set synapseai_release to such a one ({last} is the "
            "newest), or take this host out of the Gaudi nodes' group."
        )
    if accept_unsupported or support(release, system) != UNSUPPORTED:
        return ""
    names = [name if support(release, name) == SUPPORTED else f"{name} (unconfirmed)" for name in _systems(release)]
    return (
        f"SynapseAI {release} is not supported on {system}, only on {', '.join(names)}; use one of these, "
        "or set synapseai_accept_unsupported_os=true to try it at your own risk."
    )


def release_cautions(release: str, system: str) -> list[str]:
    """Sentences on what nothing confirms, and on what the release cannot be used for."""
    if release not in _BY_RELEASE:
        return [f"SynapseAI {release} is not known to this collection: neither its systems nor its PyTorch are."]
    said = []
    if support(release, system) == UNCONFIRMED:
        said.append(
            f"SynapseAI {release} on {system} is unconfirmed: no support matrix page of the vendor's was found for it."
        )
    torch = torch_version(release)
    if torch and _numbers(torch) < _numbers(TRAINER_TORCH):
        said.append(
            f"SynapseAI {release} brings PyTorch {torch}, and the trainer needs {TRAINER_TORCH} or newer: the node "
            "gets drivers and tools, but the collection's jobs do not run with this release's PyTorch."
        )
    return said


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
