"""What the monitoring roles install: Grafana from its own repository, the rest from the distribution."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from gaudi3_deploy import yaml_file
from gaudi3_deploy.collection._mirror import (
    EPEL,
    EPEL_KEY,
    GRAFANA,
    GRAFANA_KEY,
    GRAFANA_KEY_SOURCE,
    GRAFANA_SOURCE,
    UBUNTU,
)
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.holes.order import compare_debian
from gaudi3_deploy.mirror import apt, dnf
from gaudi3_deploy.mirror.apt import Stanza
from gaudi3_deploy.mirror.download import Folder, Wanted

#: What the roles prometheus, alertmanager and node_exporter install on Ubuntu.
PACKAGES = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")
#: Packages for RHEL 9 that Red Hat does not have, and the key that signs them.
EPEL_SOURCE = "https://dl.fedoraproject.org/pub/epel/9/Everything/x86_64"
EPEL_KEY_SOURCE = "https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-9"
#: What the role node_exporter installs on RHEL, of EPEL. The other roles do not run there.
RPM_PACKAGES = ("node-exporter",)
_POCKETS = ("", "-updates", "-security")
_COMPONENTS = ("main", "universe")


@dataclass(frozen=True)
class Sources:
    """Where the packages of the monitoring roles are, and which Grafana is one."""

    grafana: str
    """Address of Grafana's repository."""
    grafana_key: str
    grafana_package: str
    """As apt takes it, with a version that may end in an asterisk."""
    distribution: str = "http://archive.ubuntu.com/ubuntu"
    epel: str = EPEL_SOURCE
    """Address of EPEL's repository for RHEL 9."""
    epel_key: str = EPEL_KEY_SOURCE


def sources_of(collection: Path) -> Sources:
    """As the role grafana has them.

    Raises:
        UsageError: The collection is not there.
    """
    path = collection / "roles/grafana/defaults/main.yml"
    try:
        found: Any = yaml_file.read(path.read_text())
        return Sources(GRAFANA_SOURCE, GRAFANA_KEY_SOURCE, str(found["grafana_package"]))
    except (OSError, KeyError) as error:
        raise UsageError(f"{path} does not say which Grafana: run this in a checkout, or leave it out.") from error


def grafana(folder: Folder, sources: Sources) -> list[Wanted]:
    """Have the index and key of Grafana's repository; the newest package that the role takes.

    Raises:
        DeployError: The repository does not have it.
    """
    name, _equals, version = sources.grafana_package.partition("=")
    folder.fetch([Wanted(GRAFANA_KEY, sources.grafana_key, settled=False)])
    listed = apt.index(folder, sources.grafana, GRAFANA, "stable", ("main",))
    fit = [each for each in listed if each["Package"] == name and fnmatchcase(each.get("Version", ""), version or "*")]
    if not fit:
        raise DeployError(f"{sources.grafana} has no {sources.grafana_package}.")
    return [apt.wanted(max(fit, key=_order), sources.grafana, GRAFANA)]


def distribution(folder: Folder, sources: Sources, release: str) -> list[Wanted]:
    """Have the indexes of a release of Ubuntu, such as jammy; the monitoring packages with all that they depend on.

    Raises:
        DeployError: The archive lacks one of them.
    """
    listed: list[Stanza] = []
    for pocket in _POCKETS:
        listed += apt.index(folder, sources.distribution, UBUNTU, f"{release}{pocket}", _COMPONENTS)
    return [apt.wanted(each, sources.distribution, UBUNTU) for each in closure(listed, PACKAGES)]


def epel(folder: Folder, sources: Sources) -> list[Wanted]:
    """Have the metadata and key of EPEL; the monitoring packages of RHEL with all of it that they depend on.

    Raises:
        DeployError: EPEL lacks one of them.
    """
    folder.fetch([Wanted(EPEL_KEY, sources.epel_key, settled=False)])
    return dnf.closure(folder, sources.epel, EPEL, RPM_PACKAGES)


def closure(listed: Iterable[Stanza], names: Sequence[str]) -> list[Stanza]:
    """Packages by their names, with all that they depend on: the newest of each, as apt takes it.

    Of alternatives, those are taken that the index has, the first of them: a node may have another one already.

    Raises:
        DeployError: One is not in the index.
    """
    best: dict[str, Stanza] = {}
    for each in listed:
        best[each["Package"]] = max(best.get(each["Package"], each), each, key=_order)
    provided: dict[str, str] = {}
    for each in sorted(best.values(), key=lambda each: each["Package"]):
        for choices in _names(each.get("Provides", "")):
            provided.setdefault(choices[0], each["Package"])
    found: dict[str, Stanza] = {}
    open_ends = [(name, "the role") for name in names]
    while open_ends:
        name, by = open_ends.pop()
        name = name if name in best else provided.get(name, name)
        if name in found:
            continue
        if name not in best:
            raise DeployError(f"The distribution's index has no {name}, which {by} needs.")
        found[name] = best[name]
        for choices in _names(", ".join(filter(None, map(best[name].get, ("Pre-Depends", "Depends"))))):
            known = [choice for choice in choices if choice in best or choice in provided]
            open_ends.append(((known or choices)[0], name))
    return [found[name] for name in sorted(found)]


def _names(relation: str) -> list[list[str]]:
    """The alternatives of each part of a relation field, without versions and architectures."""
    parts = [part.split("|") for part in relation.split(",") if part.strip()]
    return [[re.split(r"[\s:(\[]", choice.strip())[0] for choice in choices] for choices in parts]


def _order(stanza: Stanza) -> Any:
    """By which packages of one name are in the order of their versions."""
    return cmp_to_key(compare_debian)(stanza.get("Version", "0"))
