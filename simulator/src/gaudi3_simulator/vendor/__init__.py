"""The simulated vendor repository: Intel's package names, stand-in contents, a real signature."""

from __future__ import annotations

from .repository import RELEASES, Fault, Repository, build_repository

__all__ = ["RELEASES", "Fault", "Repository", "build_repository"]
