# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the roles install from a sealed mirror, and what a host asks of it before anything is installed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._mirror import LOCK, below, mirror_address
from .._pytorch.release import folder_of
from . import drivers, fabric, pytorch
from .addresses import addresses_here
from .given import truth
from .model import Answers, Question, Values, mapping


def index_plain_http(values: Values) -> bool:
    """Whether pip may ask an index over plain http: the mirror's own, as its address was given so."""
    return _plain_http(values, "pytorch_pip_index_url")


def serving_pip_index_plain_http(values: Values) -> bool:
    """The same of the index for served models on a CPU."""
    return _plain_http(values, "serving_pip_index_url")


def _plain_http(values: Values, variable: str) -> bool:
    mirror = mirror_address(values("gaudi_mirror"))
    return mirror.startswith("http:") and bool(below(mirror, values(variable)))


def trainer_index_url(values: Values) -> str:
    """The index of a job's container where nobody says otherwise: PyTorch's, which the role alone does not know."""
    if values("trainer_runtime") != "container":
        return ""
    given = values("pytorch_pip_index_url")
    return str(given) if given is not None else addresses_here(values)["index"]


def trainer_index_plain_http(values: Values) -> bool:
    """Whether that may be asked over plain http."""
    if values("trainer_runtime") != "container":
        return False
    if values("pytorch_pip_index_plain_http") is not None:
        return truth(values, "pytorch_pip_index_plain_http")
    return _plain_http(values, "trainer_pip_index_url")


def tarball_lock(values: Values) -> str:
    """Address of the lock that has the digest of PyTorch's tarball; empty where that is from elsewhere."""
    mirror = mirror_address(values("gaudi_mirror"))
    return f"{mirror}/{LOCK}" if below(mirror, values("pytorch_repository_url")) else ""


def wanted(values: Values, phases: Collection[str], found: Answers) -> dict[str, str]:
    """Paths in the mirror that phases would install from, by the variables that name them.

    What has nothing to install, as the host has answered, wants nothing.
    """
    paths: dict[str, str] = {}

    def want(variable: str, more: str = "") -> None:
        path = below(mirror_address(values("gaudi_mirror")), values(variable))
        if path:
            paths[variable] = path + more

    if "drivers" in phases and drivers.by_dnf(values):
        want("synapseai_rpm_url", "/repodata/repomd.xml")
        want("synapseai_rpm_key_url")
    elif "drivers" in phases and _installs(found, "packages"):
        want("synapseai_repository_url", f"/dists/{values('synapseai_apt_suite')}/InRelease")
        want("synapseai_key_url")
    if "pytorch" in phases and values("pytorch_state") == "present" and _installs(found, "pytorch"):
        version, dash, build = str(values("pytorch_release")).partition("-")
        folder = values("pytorch_system") or folder_of(pytorch.system(values))
        want("pytorch_repository_url", f"/{version}/{build}/pytorch/{folder}" if dash and folder else "")
        if values("pytorch_requirements"):
            want("pytorch_pip_index_url")
    if "fabric" in phases and fabric.builds(values):
        want("fabric_ofi_wrapper_url")
    if "grafana" in phases:
        want("grafana_repository_url", "/dists/stable/InRelease")
        want("grafana_repository_key_url")
    return paths


def _installs(found: Answers, name: str) -> bool:
    """Whether something is to be installed: unless the host has said that nothing is, which no failure says."""
    return mapping(found, name).get("changed") is not False


def question(phases: Collection[str], found: Answers) -> Question:
    """Whether the mirror answers this host, is of its release, and has what these phases install from it."""

    def applies(values: Values) -> bool:
        return bool(mirror_address(values("gaudi_mirror"))) and bool(wanted(values, phases, found))

    def options(values: Values) -> dict[str, Any]:
        return {
            "url": mirror_address(values("gaudi_mirror")),
            "release": str(values("synapseai_release")),
            "lock_sha256": str(values("gaudi_mirror_lock_sha256") or ""),
            "wanted": wanted(values, phases, found),
        }

    return Question("mirror", "synapseai", module="mirror", options=options, applies=applies)
