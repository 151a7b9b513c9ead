"""The vendor's container image under its name, as files that a web server hands out to a registry's clients.

Its file system is that of the node image, and over it lie the files of the packages that the vendor's image has. Names
of packages, variables and paths: HabanaAI/Setup_and_Install, dockerfiles/base and dockerfiles/pytorch (1.22.0); that
other releases have the same is UNCONFIRMED. ``LD_PRELOAD`` of the vendor's image is left out, since the node image has
no tcmalloc. Open MPI is not in it either, but its variables are.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .. import RequestError
from .catalogue import packages
from .deb import tar_gz
from .pytorch import FIRST, is_for, torch_version

_PACKAGES = ("rdma-core", "thunk", "firmware-tools", "graph")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def systems(release: str) -> tuple[str, ...]:
    """The systems that a release has images for."""
    return tuple(system for system in FIRST if is_for(release, system))


def name(release: str, system: str) -> str:
    """The vendor's name of the image, without the tag."""
    version = torch_version(release)
    if system not in systems(release):
        raise RequestError(f"Release {release} has no image for {system}: give one of {', '.join(systems(release))}.")
    return f"gaudi-docker/{release.partition('-')[0]}/{system}/habanalabs/pytorch-installer-{version}"


def environment(system: str, inherited: dict[str, str]) -> dict[str, str]:
    """Variables of the vendor's image of a system."""
    rhel = system.startswith("rhel")
    mpi = "/opt/habanalabs/openmpi" if rhel else "/opt/amazon/openmpi"
    rdma = "/opt/habanalabs/rdma-core/src"
    own = {"OPENMPI_VERSION": "4.1.6", "OMPI_MCA_btl": "^openib"} if rhel else {
        "DEBIAN_FRONTEND": "noninteractive",
        "OS_NUMBER": system.removeprefix("ubuntu").replace(".", ""),
        "PYTHONPATH": "/root:/usr/lib/habanalabs/",
    }  # fmt: skip
    return {
        "PATH": f"{mpi}/bin:{inherited.get('PATH', _PATH)}",
        "LD_LIBRARY_PATH": f"{mpi}/lib:/usr/lib/habanalabs:",
        "GC_KERNEL_PATH": "/usr/lib/habanalabs/libtpc_kernels.so",
        "HABANA_LOGS": "/var/log/habana_logs/",
        "HABANA_SCAL_BIN_PATH": "/opt/habanalabs/engines_fw",
        "HABANA_PLUGINS_LIB_PATH": "/opt/habanalabs/habana_plugins",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "on",
        "MPI_ROOT": mpi,
        "OPAL_PREFIX": mpi,
        "MPICC": f"{mpi}/bin/mpicc",
        "RDMAV_FORK_SAFE": "1",
        "FI_EFA_USE_DEVICE_RDMA": "0" if rhel else "1",
        "RDMA_CORE_ROOT": rdma,
        "RDMA_CORE_LIB": f"{rdma}/build/lib",
        "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": "7516192768",
        **own,
    }


def shelve(layout: Path, dest: Path, release: str, system: str) -> str:
    """Put an image, laid out as ``podman save --format oci-dir`` does, on the shelf of ``dest``; gives name and tag."""
    full = name(release, system)
    (found,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(_blob(layout, found["digest"]).read_bytes())
    config = json.loads(_blob(layout, manifest["config"]["digest"]).read_bytes())
    folder = dest / "v2" / full
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    (folder / "manifests").mkdir(exist_ok=True)
    for layer in manifest["layers"]:
        _share(_blob(layout, layer["digest"]), folder / "blobs" / layer["digest"])
    layer = _layer(release)
    manifest["layers"].append(
        {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **_keep(folder / "blobs", layer)}
    )
    config["rootfs"]["diff_ids"].append(f"sha256:{hashlib.sha256(gzip.decompress(layer)).hexdigest()}")
    # It need not have an entry for each layer, but a shorter one than the layers are is refused by some clients.
    config.pop("history", None)
    inherited = dict(line.split("=", 1) for line in config["config"].get("Env") or [])
    config["config"] = {
        "Cmd": ["/bin/bash"],
        "Env": [f"{key}={value}" for key, value in environment(system, inherited).items()],
        "Labels": {
            "org.opencontainers.image.description": "A simulated image, made by the gaudi3.scale simulator: Debian "
            f"with torch for CPU and a simulated hpu device, not the vendor's image of release {release}. "
            "Nothing of the vendor's is in it, and it runs on no hardware."
        },
    }
    manifest["config"] |= _keep(folder / "blobs", json.dumps(config).encode())
    # Clients take the kind of a manifest from the header that the web server makes of this field.
    manifest["mediaType"] = found["mediaType"]
    content = json.dumps(manifest).encode()
    for reference in (f"sha256:{hashlib.sha256(content).hexdigest()}", release, "latest"):
        (folder / "manifests" / reference).write_bytes(content)
    return f"{full}:{release}"


def _layer(release: str) -> bytes:
    """The files of the vendor's packages that its image has."""
    wanted = {f"habanalabs-{each}" for each in _PACKAGES}
    files = {
        path.lstrip("/"): file
        for package in packages(release)
        if package.name in wanted
        for path, file in package.files.items()
    }
    return tar_gz(files)


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _share(blob: Path, target: Path) -> None:
    """Link a blob: one file serves every image that has the layer."""
    target.unlink(missing_ok=True)
    os.link(blob, target)


def _keep(folder: Path, content: bytes) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    (folder / digest).write_bytes(content)
    return {"digest": digest, "size": len(content)}
