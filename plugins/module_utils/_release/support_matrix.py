# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which SynapseAI releases there are, with which PyTorch, for which operating systems and cards, as the matrix has it.

A pair of which no page of the vendor's was found is UNCONFIRMED: neither promised nor denied.
"""

from __future__ import annotations

from .matrix import LAST_OF_GENERATION, LINES, SOURCES, UNCONFIRMED, failing
from .versions import Release

SUPPORTED = "supported"
UNSUPPORTED = "unsupported"

#: The oldest PyTorch that the trainer takes (``trainer/pyproject.toml``).
TRAINER_TORCH = "2.9"

#: Families of systems that a minor release of which nothing is known may be for.
_FAMILIES = ("Ubuntu", "RedHat")
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
    old = _generation_problem(parsed, generation or "")
    if old:
        return old
    if accept_unsupported or support(release, system) != UNSUPPORTED:
        return ""
    names = [name if support(release, name) == SUPPORTED else f"{name} (unconfirmed)" for name in _systems(release)]
    return (
        f"SynapseAI {release} is not supported on {system}, only on {', '.join(names)}; use one of these, "
        "or set synapseai_accept_unsupported_os=true to try it at your own risk."
    )


def _generation_problem(release: Release, generation: str) -> str:
    """Of the first generation. Reports are stricter than the vendor's matrix, and the stricter of both counts."""
    unlisted, reported = LAST_OF_GENERATION.get(generation), failing(generation)
    ends = [unlisted] if unlisted else []
    end = min([*ends, reported.since] if reported else ends, default=None)
    if end is None or release < end:
        return ""
    why = f"which SynapseAI {release} does not drive"
    if reported and (unlisted is None or release < unlisted):
        why = f"which could not be acquired any more with SynapseAI {end.version} ({SOURCES[reported.source]})"
    last = [each for each in known_releases() if Release.parse(each) < end][-1]
    return (
        f"The cards are first-generation Gaudi, {why}: set synapseai_release to one before {end.version} ({last} is "
        "the newest), or take this host out of the Gaudi nodes' group."
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
