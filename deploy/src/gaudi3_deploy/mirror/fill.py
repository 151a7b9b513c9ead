"""What a mirror of one release has, where each part comes from, and the variables that name it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_deploy import yaml_file
from gaudi3_deploy.collection._mirror import (
    DEB,
    DEB_KEY,
    GRAFANA,
    INDEX,
    REGISTRY,
    RPM,
    RPM_KEY,
    TORCH,
    VAULT,
    WRAPPER,
    WRAPPER_SOURCE,
    addresses,
)
from gaudi3_deploy.collection._release.matrix import FOLDERS, PYTHONS
from gaudi3_deploy.collection._release.node import said_system, system_name
from gaudi3_deploy.collection._release.support_matrix import UNSUPPORTED, known_releases, support, torch_version
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.mirror import apt, dnf
from gaudi3_deploy.mirror.alone import alone
from gaudi3_deploy.mirror.download import Folder, Wanted
from gaudi3_deploy.mirror.images import image
from gaudi3_deploy.mirror.monitoring import Sources, distribution, epel, grafana
from gaudi3_deploy.mirror.sealed import Lock
from gaudi3_deploy.mirror.wheels import wheels, write_index

SUITES = {"Ubuntu 22.04": "jammy", "Ubuntu 24.04": "noble"}


@dataclass(frozen=True)
class Request:
    """What to mirror."""

    release: str
    systems: tuple[str, ...]
    """By the matrix's names, such as ``Ubuntu 24.04``."""
    vault: str
    """Address of the vendor's host, with the folder that its repositories are in."""
    pytorch: bool = True
    requirements: tuple[Path, ...] = ()
    python: str = ""
    index: str = ""
    """Address of the index that wheels come from; empty: the one that pip is configured for."""
    extra_index: str = ""
    """Address of one that is asked besides."""
    wrapper: str = ""
    """Address of the folder of the OFI wrapper's sources; empty: without them."""
    wrapper_sha256: tuple[tuple[str, str], ...] = ()
    monitoring: Sources | None = None
    """Where the packages of the monitoring roles are; None: without them."""
    images: tuple[str, ...] = ()
    """Whole names of container images."""
    registry: str = f"https://{REGISTRY}"
    """Address of the registry that has the vendor's images."""


def check(release: str, systems: Sequence[str]) -> tuple[str, ...]:
    """The systems by the matrix's names.

    Raises:
        UsageError: The release is not known, or not for one of the systems.
    """
    if release not in known_releases():
        raise UsageError(f"--release is {release!r}: give one of {', '.join(known_releases())}.")
    found = []
    for given in systems:
        name = system_name(given)
        if name not in FOLDERS or support(release, name) == UNSUPPORTED:
            here = [said_system(each) for each in FOLDERS if support(release, each) != UNSUPPORTED]
            raise UsageError(f"Release {release} is not for {given}: give --system as one of {', '.join(here)}.")
        found.append(name)
    return tuple(dict.fromkeys(found))


def wrapper_of(collection: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Address and digests of the OFI wrapper's sources, as the role fabric has them.

    Raises:
        UsageError: The collection is not there.
    """
    path = collection / "roles/fabric/defaults/main.yml"
    try:
        found: Any = yaml_file.read(path.read_text())
        return WRAPPER_SOURCE, tuple(sorted(found["fabric_ofi_wrapper_sha256"].items()))
    except (OSError, KeyError) as error:
        raise UsageError(
            f"{path} does not say what the OFI wrapper is: run this in a checkout, or leave it out."
        ) from error


def fill(where: Path, request: Request, tell: Callable[[str], None]) -> tuple[Lock, int]:
    """Make a mirror, or go on with one: its lock, and how many files were fetched now.

    Raises:
        UsageError: The folder is of another release, or the requirements cannot be.
        DeployError: Something is not available, or is not what it should be.
    """
    asked = (request.python, request.index, request.extra_index)
    chosen = [wheel for each in request.requirements for wheel in wheels(each, *asked)]
    with alone(where):
        return _filled(Folder.open(where, request.release, tell), request, chosen, tell)


def _filled(
    folder: Folder, request: Request, chosen: Sequence[Wanted], tell: Callable[[str], None]
) -> tuple[Lock, int]:
    if request.monitoring and not any(system in SUITES for system in request.systems):
        tell(
            "Of the monitoring packages the mirror gets node_exporter for RHEL, and Grafana. Prometheus, Alertmanager "
            "and Grafana run on Ubuntu and Debian alone: add --system 'Ubuntu 24.04' for a monitoring host with it."
        )
    wanted = [*_vendor(folder, request), *chosen]
    wanted += [
        Wanted(f"{WRAPPER}/{name}", f"{request.wrapper}/{name}", digest) for name, digest in request.wrapper_sha256
    ]
    if request.monitoring:
        wanted += grafana(folder, request.monitoring)
        suites = [SUITES[system] for system in request.systems if system in SUITES]
        for suite in suites:
            wanted += distribution(folder, request.monitoring, suite)
        if len(suites) < len(request.systems):
            wanted += epel(folder, request.monitoring)
    images = [image(folder, name, request.registry) for name in request.images]
    wanted += [each for one in images for each in one.wanted]
    folder.fetch({each.path: each for each in wanted}.values())
    write_index(folder)
    for one in images:
        one.finish(folder)
    return folder.seal(), folder.fetched


def _vendor(folder: Folder, request: Request) -> list[Wanted]:
    def at(below: str) -> str:
        return request.vault + below.removeprefix(VAULT)

    keys = {DEB_KEY if system in SUITES else RPM_KEY for system in request.systems}
    folder.fetch([Wanted(key, at(key), settled=False) for key in sorted(keys)])
    wanted: list[Wanted] = []
    for system in request.systems:
        if system in SUITES:
            wanted += apt.packages(folder, at(DEB), DEB, SUITES[system])
        else:
            below = f"{RPM}/{system.rpartition(' ')[2]}"
            wanted += dnf.packages(folder, at(below), below)
        torch = torch_version(request.release)
        if request.pytorch and torch is None:
            raise UsageError(f"No public source names the PyTorch of {request.release}: add --no-pytorch.")
        version, build = request.release.split("-")
        for suffix in PYTHONS[FOLDERS[system]].values() if request.pytorch else ():
            name = f"pytorch_modules{suffix}-v{torch}_{version}_{build}.tgz"
            path = f"{TORCH}/{version}/{build}/pytorch/{FOLDERS[system]}/{name}"
            wanted.append(Wanted(path, at(path), optional=bool(suffix)))
    return wanted


def variables(lock: Lock, url: str) -> dict[str, object]:
    """Variables of the collection that name a mirror, for all that it has."""

    def has(below: str) -> bool:
        return any(path.startswith(f"{below}/") for path in lock.files)

    at = addresses(url, "{{ ansible_facts.distribution_version }}")
    found: dict[str, object] = {"synapseai_release": lock.release}
    if has(DEB):
        found |= {"synapseai_repository_url": at["apt"], "synapseai_key_url": at["apt_key"]}
    if has(RPM):
        found |= {"synapseai_rpm_url": at["rpm"], "synapseai_rpm_key_url": at["rpm_key"]}
    if has(TORCH):
        found["pytorch_repository_url"] = at["pytorch"]
        digests = {kept.sha256 for path, kept in lock.files.items() if path.startswith(f"{TORCH}/")}
        if len(digests) == 1:
            found["pytorch_sha256"] = digests.pop()
    if has(INDEX):
        found["pytorch_pip_index_url"] = at["index"]
        found["serving_pip_index_url"] = found["serving_torch_index_url"] = at["index"]
        if url.startswith("http:"):
            found["pytorch_pip_index_plain_http"] = found["serving_pip_index_plain_http"] = True
    if has(GRAFANA):
        found |= {"grafana_repository_url": at["grafana"], "grafana_repository_key_url": at["grafana_key"]}
    if has(WRAPPER):
        found["fabric_ofi_wrapper_url"] = at["wrapper"]
    return found
