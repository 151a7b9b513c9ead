# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""SynapseAI release numbers and what they can be compared with.

A release is ``1.23.0-695``. The driver reports ``1.23.0-2eae87a`` (a git hash, not the build), so only
``x.y.z``
can be compared with it. Builds do not grow from one ``x.y.z`` to the next (1.24.1-482 came after
1.24.0-1007):
releases are ordered by ``x.y.z``, and the build decides only between equal ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)-(\d+)")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, order=True)
class Release:
    """A SynapseAI release, ordered from old to new."""

    major: int
    minor: int
    patch: int
    build: int

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read ``MAJOR.MINOR.PATCH-BUILD``; ValueError says what was wrong in one sentence."""
        match = _RELEASE.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"'{text}' is not a SynapseAI release: write it as MAJOR.MINOR.PATCH-BUILD, for example 1.23.0-695."
            )
        major, minor, patch, build = (int(part) for part in match.groups())
        return cls(major, minor, patch, build)

    @property
    def version(self) -> str:
        """The ``x.y.z`` part, which drivers and tools report too."""
        return f"{self.major}.{self.minor}.{self.patch}"

    def __str__(self) -> str:
        return f"{self.version}-{self.build}"


def version_of(text: str | None) -> str | None:
    """The ``x.y.z`` at the start of a driver or package version, None where there is none."""
    match = _VERSION.match(text or "")
    return match.group() if match else None
