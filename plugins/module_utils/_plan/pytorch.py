# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""PyTorch of the vendor's release, and that all nodes have it from the same tarball."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from typing import Any

from .._host.answers import exact_texts
from .._host.service_state import is_unchanged
from .addresses import addresses_here
from .given import fact, host, part
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

INSTALL = "Install PyTorch"
#: The Python of the plain tarball of each system (HabanaAI/Setup_and_Install 1.22.0, dockerfiles/base). Ubuntu 22.04's
#: own is too old for the trainer and is refused, as nothing else is there by default.
PYTHONS = {"RedHat 9.4": "/usr/bin/python3.11", "RedHat 9.6": "/usr/bin/python3.12"}
#: What dockerfiles/pytorch of the same sources installs for PyTorch itself, beside Python's own, which stands for {}.
PACKAGES = {
    "Debian": (
        *("{}-venv", "libgoogle-perftools-dev", "libhdf5-dev", "libjpeg-dev", "liblapack-dev", "libnuma-dev"),
        *("libopenblas-dev", "numactl"),
    ),
    "RedHat": (
        *("{}", "cairo-devel", "gperftools-devel", "lapack-devel", "numactl", "numactl-devel", "openblas-devel"),
        "zlib-devel",
    ),
}


def system(values: Values) -> str:
    """The operating system, as the vendor's tarballs are named after it."""
    return f"{fact(values, 'distribution')} {fact(values, 'distribution_version')}"


def decide(values: Values) -> Mapping[str, Any]:
    """What role pytorch takes on this host where nobody says otherwise."""
    where = addresses_here(values)
    return {
        "distribution": system(values),
        "python": PYTHONS.get(system(values), "/usr/bin/python3"),
        "repository_url": where["pytorch"],
        "index_url": where["index"],
    }


def packages(values: Values) -> list[str]:
    """What PyTorch needs of the distribution."""
    python = os.path.basename(str(values("pytorch_python")))
    return [name.format(python) for name in PACKAGES.get(fact(values, "os_family"), ())]


def _asks(run: Run, values: Values) -> bool:
    """Not where other phases alone run: a node that cannot train can have its driver and be monitored."""
    return (
        values("trainer_runtime") != "container"
        and "pytorch" not in run.skipped
        and (run.has("pytorch", "train") or run.only_preflight)
    )


def _unchanged(values: Values, answers: Answers) -> bool:
    return values("pytorch_state") == "present" and is_unchanged(mapping(answers, "pytorch"))


PHASE = Phase("pytorch", [Question("pytorch", "pytorch", INSTALL)], _asks, _unchanged)


def tarballs_of_all(values: Values) -> str:
    """Why the nodes of the play may not have the tarballs that they have; empty where they may."""
    nodes = [host(values, name) for name in values("ansible_play_hosts_all")]
    reported = [part(each, plan, "found", "pytorch") for plan in ("_gaudi_plan", "_pytorch_plan") for each in nodes]
    reported += [each.get("_pytorch_installed") for each in nodes]
    return tarballs_problem(reported, str(values("pytorch_root")), str(values("pytorch_release")))


def tarballs_problem(reported: Iterable[object], root: str, release: str) -> str:
    """Why nodes may not have different files under the name of one tarball; empty where they have not.

    ``reported`` is what the module found on each node, name and SHA-256 of the tarball where one is installed.
    """
    found = exact_texts(reported, "tarball", "sha256")
    if len({name for name, _sha256 in found}) == len(found):
        return ""
    named = ", ".join(f"{name} with SHA-256 {sha256}" for name, sha256 in found)
    return (
        f"Nodes have different files under the name of one tarball ({named}): find out which is right, set "
        f"pytorch_sha256 to it, and remove {root}/torch-{release} on the nodes that have another."
    )
