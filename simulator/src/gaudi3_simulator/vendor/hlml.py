"""``libhlml.so`` of a release, compiled from ``simulator/hlml``."""

from __future__ import annotations

from pathlib import Path

from .. import SimulatorError, compiled
from ..node import releases

LIBRARY = "/usr/lib/habanalabs/libhlml.so"

# The library's own name inside the file is UNCONFIRMED.
_NAME = "libhlml.so"


def source_folder() -> Path | None:
    """Sources of the library: from the checkout, or beside this package when it is installed; None without them."""
    here = Path(__file__).resolve().parent
    found = (folder for folder in (here.parents[2] / "hlml", here / "hlml") if (folder / "hlml.h").exists())
    return next(found, None)


def source_files() -> list[Path]:
    """All that the library is compiled from, in order."""
    folder = source_folder()
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h")) if folder else []


def library(release: str) -> Path:
    """The compiled library of ``release`` (``1.23.0-695``)."""
    sources = source_files()
    if not sources:
        raise SimulatorError("The sources of the simulated libhlml.so (simulator/hlml) are missing: use a checkout.")
    major, minor = releases.version_key(release)[:2]
    return compiled.library(
        _NAME, "hlml", sources, [f"-DHLML_API={major * 100 + minor}", f'-DHLML_RELEASE="{release}"']
    )
