"""The packages of a mirror by name and version, as its lock names their files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gaudi3_deploy.collection._mirror import TORCH, WHEELS
from gaudi3_deploy.collection._release.support_matrix import torch_version
from gaudi3_deploy.mirror.sealed import Lock
from gaudi3_deploy.mirror.wheels import normal

#: Ecosystems of OSV whose advisories are about files of a kind.
ECOSYSTEMS = {
    "pypi": ("PyPI",),
    "deb": ("Debian", "Ubuntu"),
    "rpm": ("Red Hat", "Rocky Linux", "AlmaLinux"),
}


@dataclass(frozen=True, order=True)
class Package:
    """One package that nodes install."""

    kind: str
    """pypi, deb or rpm."""
    name: str
    version: str

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:{self.kind}/{self.name}@{self.version.replace('+', '%2B')}"

    def is_of(self, ecosystem: str, name: str) -> bool:
        """Whether an advisory for this name in an ecosystem is about this package."""
        if ecosystem.partition(":")[0] not in ECOSYSTEMS[self.kind]:
            return False
        return (normal(name) if self.kind == "pypi" else name) == self.name


def packages(lock: Lock) -> list[Package]:
    """What a lock comes to. The vendor's tarball has a torch of the release's version, which counts as that torch."""
    found = set(_of_files(lock.files))
    torch = torch_version(lock.release)
    if torch and any(path.startswith(f"{TORCH}/") for path in lock.files):
        found.add(Package("pypi", "torch", torch))
    return sorted(found)


def _of_files(paths: Iterable[str]) -> Iterable[Package]:
    for path in paths:
        name = path.rpartition("/")[2]
        if path.startswith(f"{WHEELS}/") and name.endswith(".whl") and name.count("-") >= 4:
            project, version = name.split("-")[:2]
            yield Package("pypi", normal(project), version)
        elif found := re.fullmatch(r"([^_]+)_([^_]+)_[^_]+\.deb", name):
            yield Package("deb", found[1], found[2].replace("%3a", ":"))
        elif found := re.fullmatch(r"(.+)-([^-]+-[^-]+)\.[^.]+\.rpm", name):
            yield Package("rpm", found[1], found[2])
