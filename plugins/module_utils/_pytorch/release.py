# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which tarball of the vendor's PyTorch is for which release, operating system and Python.

The vendor's host has it as ``REL/BUILD/pytorch/OS/pytorch_modules[_pyNNN]-vPT_REL_BUILD.tgz``
(HabanaAI/Setup_and_Install 1.22.0, ``dockerfiles/pytorch/install_packages.sh``). Each tarball has wheels for one
Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._refusal import Refusal
from .._release.matrix import FOLDERS, PYTHONS
from .._release.support_matrix import TRAINER_TORCH, UNSUPPORTED, support, torch_version
from .._release.versions import Release

#: The oldest Python that the trainer runs on: ``requires-python`` of trainer/pyproject.toml.
TRAINER_PYTHON = "3.11"


@dataclass(frozen=True)
class Tarball:
    """A tarball of the vendor's, and what its wheels are for."""

    release: Release
    system: str
    torch: str
    name: str

    @property
    def path(self) -> str:
        """Where it lies below the folder of all tarballs."""
        return f"{self.release.version}/{self.release.build}/pytorch/{self.system}/{self.name}"


def folder_of(distribution: str) -> str:
    """The vendor's folder of a distribution (``Ubuntu 24.04``); empty where it has none."""
    return FOLDERS.get(distribution, "")


def offered(release: str) -> list[str]:
    """The systems that a release has tarballs for, those included that nothing confirms."""
    return [name for name in FOLDERS if support(release, name) != UNSUPPORTED]


def minor(version: str) -> str:
    """``3.12`` of ``3.12.3``."""
    return ".".join(version.split(".")[:2])


def too_old(version: str) -> bool:
    """Whether the trainer does not run on a Python."""
    return _numbers(minor(version)) < _numbers(TRAINER_PYTHON)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def tarball(release: str, system: str, distribution: str, python: str, version: str, pythons: Sequence[str]) -> Tarball:
    """The tarball for a node; Refusal where there is none.

    ``system`` is the vendor's folder, and ``distribution`` the node's, for the message. ``python`` is the version of
    the node's Python, ``version`` a PyTorch version which precedes the known one, and ``pythons`` those Pythons for
    which the plain tarball is, where a site says so.
    """
    try:
        parsed = Release.parse(release)
    except ValueError as error:
        raise Refusal(f"pytorch_release: {error}") from error
    torch = version or torch_version(str(parsed))
    if not torch:
        raise Refusal(
            f"No public source names the PyTorch of release {parsed}: set pytorch_version to the one in the name of "
            "its tarball, such as 2.9.0."
        )
    if _numbers(torch) < _numbers(TRAINER_TORCH):
        raise Refusal(
            f"Release {parsed} brings PyTorch {torch}, and the trainer needs {TRAINER_TORCH} or newer: take a newer "
            "release, or leave PyTorch and training out with --skip-tags pytorch,train."
        )
    systems = offered(str(parsed))
    if not system or system not in PYTHONS or (system in FOLDERS.values() and _name_of(system) not in systems):
        what = f"the folder {system}" if system else distribution
        raise Refusal(
            f"The vendor has no PyTorch of release {parsed} for {what}, only for {', '.join(systems)}: use one of "
            "these, set pytorch_system to the folder of one that is like it, or pytorch_state to preinstalled."
        )
    if too_old(python):
        raise Refusal(
            f"{distribution}'s Python {minor(python)} is too old for the trainer, which needs {TRAINER_PYTHON} or "
            f"newer: set pytorch_python to such a Python{_newer(system)}, or leave PyTorch and training out with "
            "--skip-tags pytorch,train."
        )
    known = dict.fromkeys(map(str, pythons), "") if pythons else PYTHONS[system]
    if minor(python) not in known:
        raise Refusal(
            f"The vendor's PyTorch of release {parsed} for {system} is for Python {' or '.join(known)}, but "
            f"pytorch_python is {minor(python)}: set pytorch_python to one of these, or leave PyTorch and training out "
            "with --skip-tags pytorch,train."
        )
    name = f"pytorch_modules{known[minor(python)]}-v{torch}_{parsed.version}_{parsed.build}.tgz"
    return Tarball(parsed, system, torch, name)


def _name_of(system: str) -> str:
    return next(name for name, folder in FOLDERS.items() if folder == system)


def _newer(system: str) -> str:
    """The Pythons of a system's tarballs that are new enough, for use inside a sentence."""
    found = [version for version in PYTHONS[system] if not too_old(version)]
    return f" (the vendor has a tarball for {' and '.join(found)})" if found else ""
