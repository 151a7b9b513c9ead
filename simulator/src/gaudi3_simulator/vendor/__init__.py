"""The simulated vendor repository: Intel's package names, stand-in contents, a real signature."""

from __future__ import annotations

from .faults import FAULTS, Fault
from .repository import DEFAULT_RELEASE, NOT_IN_MATRIX, RELEASES, Repository, build_repository

__all__ = ["DEFAULT_RELEASE", "FAULTS", "NOT_IN_MATRIX", "RELEASES", "Fault", "Repository", "build_repository"]
