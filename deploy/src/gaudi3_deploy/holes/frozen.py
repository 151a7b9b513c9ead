"""The packages of a mirror by name and version, as its lock names their files."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gaudi3_deploy.collection._mirror import TORCH, UBUNTU, WHEELS
from gaudi3_deploy.collection._release.support_matrix import torch_version
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.mirror.apt import stanzas
from gaudi3_deploy.mirror.sealed import Lock
from gaudi3_deploy.mirror.wheels import normal

#: Releases of Ubuntu by the names of their suites.
RELEASES = {"jammy": "22.04", "noble": "24.04"}
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
    source: str = ""
    """Of a deb: the package of sources that it was built from, by which advisories name it; empty: its own name."""
    source_version: str = ""
    """Its version where that is another one."""
    releases: tuple[str, ...] = ()
    """Releases of Ubuntu, such as 22.04, that it is listed for; empty where that is not known."""

    @property
    def names(self) -> tuple[str, ...]:
        """What advisories and decisions may call it."""
        return tuple(dict.fromkeys((self.source or self.name, self.name)))

    @property
    def compared(self) -> str:
        """The version that advisories speak of."""
        return self.source_version or self.version

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:{self.kind}/{self.name}@{self.version.replace('+', '%2B')}"

    def is_of(self, ecosystem: str, name: str) -> bool:
        """Whether an advisory for this name in an ecosystem is about this package."""
        system, _colon, release = ecosystem.partition(":")
        if system not in ECOSYSTEMS[self.kind]:
            return False
        if self.releases and (system != "Ubuntu" or not set(release.split(":")) & set(self.releases)):
            return False  # another distribution's or release's package of this name has holes and fixes of its own
        return (normal(name) if self.kind == "pypi" else name) == (self.source or self.name)


def packages(lock: Lock, folder: Path | None = None) -> list[Package]:
    """What a lock comes to. The vendor's tarball has a torch of the release's version, which counts as that torch.

    With the mirror's ``folder``, its apt indexes say what Ubuntu's packages were built from, and for which release.
    """
    listed = dict(_listed(lock, folder)) if folder else {}
    found = {replace(each, **listed.get(path, {})) for path, each in _of_files(lock.files)}
    torch = torch_version(lock.release)
    if torch and any(path.startswith(f"{TORCH}/") for path in lock.files):
        found.add(Package("pypi", "torch", torch))
    return sorted(found)


def _listed(lock: Lock, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the indexes of Ubuntu's archive say of files, by their paths."""
    releases: dict[str, set[str]] = {}
    sources: dict[str, tuple[str, str]] = {}
    for path in lock.files:
        found = re.fullmatch(rf"{UBUNTU}/dists/([a-z]+)[a-z-]*/[a-z]+/binary-amd64/Packages\.gz", path)
        if not found:
            continue
        try:
            text = gzip.decompress((folder / path).read_bytes()).decode()
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise UsageError(f"{folder / path} cannot be read ({error}): verify the mirror.") from error
        for each in stanzas(text):
            place = f"{UBUNTU}/{each.get('Filename', '')}"
            source, _blank, version = each.get("Source", "").partition(" ")
            sources[place] = (source, version.strip("()"))
            releases.setdefault(place, set()).update(filter(None, [RELEASES.get(found[1])]))
    for place, (source, version) in sources.items():
        of = tuple(sorted(releases[place]))
        yield place, {"source": source, "source_version": version, "releases": of}


def _of_files(paths: Iterable[str]) -> Iterable[tuple[str, Package]]:
    for path in paths:
        name = path.rpartition("/")[2]
        if path.startswith(f"{WHEELS}/") and name.endswith(".whl") and name.count("-") >= 4:
            project, version = name.split("-")[:2]
            yield path, Package("pypi", normal(project), version)
        elif found := re.fullmatch(r"([^_]+)_([^_]+)_[^_]+\.deb", name):
            yield path, Package("deb", found[1], found[2].replace("%3a", ":"))
        elif found := re.fullmatch(r"(.+)-([^-]+-[^-]+)\.[^.]+\.rpm", name):
            yield path, Package("rpm", found[1], found[2])
