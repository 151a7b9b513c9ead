"""What the site has to know of the repository: its tracked files, its address and its version."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
#: The packages of this repository that programs of the reference import.
PACKAGES = [
    ROOT / name / "src" for name in ("trainer", "simulator", "deploy", "doctor", "migration", "benchmark-tool", "watch")
]


@cache
def tracked() -> frozenset[str]:
    """The files of the repository, and those about to be added; ignored ones are not among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


@cache
def galaxy() -> dict[str, str]:
    """The keys of galaxy.yml that are texts."""
    found = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    return {key: value for key, value in found.items() if isinstance(value, str)}


def address(path: str) -> str:
    """Where a file or folder of the repository is on the project's own site."""
    return f"{galaxy()['repository']}/tree/main/{path}".rstrip("/")
