"""The vendor's container image on the simulated shelf: pulled from the web server as a registry's clients do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator import SimulatorError
from gaudi3_simulator.vendor import container_image

from .apt import served

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
BASE = b"stands in for the file system of the node image"


def blob(layout: Path, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """An image as ``podman save --format oci-dir`` writes it: of one layer, with systemd as its command."""
    layout = tmp_path / "layout"
    (layout / "blobs/sha256").mkdir(parents=True)
    layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar", **blob(layout, BASE)}
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Cmd": ["/lib/systemd/systemd"],
            "StopSignal": "SIGRTMIN+3",
            "Env": ["container=podman", "PATH=/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            **blob(layout, json.dumps(config).encode()),
        },
        "layers": [layer],
    }
    index = {"schemaVersion": 2, "manifests": [{"mediaType": MANIFEST, **blob(layout, json.dumps(manifest).encode())}]}
    (layout / "index.json").write_text(json.dumps(index))
    return layout


class Registry:
    """A registry's client, as far as a pull needs one: every digest is checked."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}/v2/"

    def get(self, path: str, method: str = "GET") -> tuple[bytes, Any]:
        with urllib.request.urlopen(urllib.request.Request(self.base + path, method=method)) as answer:
            return answer.read(), answer

    def blob(self, name: str, descriptor: dict[str, Any]) -> bytes:
        content, _ = self.get(f"{name}/blobs/{descriptor['digest']}")
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
        assert len(content) == descriptor["size"]
        return content

    def pull(self, name: str, tag: str) -> tuple[dict[str, Any], list[bytes]]:
        content, answer = self.get(f"{name}/manifests/{tag}")
        assert answer.headers["Content-Type"] == MANIFEST
        manifest = json.loads(content)
        config = json.loads(self.blob(name, manifest["config"]))
        layers = [self.blob(name, layer) for layer in manifest["layers"]]
        plain = [gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each for each in layers]
        assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in plain]
        return config, plain


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "vendor"


@pytest.fixture
def registry(dest: Path) -> Iterator[Registry]:
    dest.mkdir()
    with served(dest, "localhost", stored_whole=True) as port:
        yield Registry(port)


@pytest.mark.parametrize(
    ("release", "system", "name"),
    [
        ("1.23.0-695", "ubuntu24.04", "gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0"),
        ("1.22.0-740", "ubuntu22.04", "gaudi-docker/1.22.0/ubuntu22.04/habanalabs/pytorch-installer-2.7.1"),
        ("1.24.1-482", "rhel9.6", "gaudi-docker/1.24.1/rhel9.6/habanalabs/pytorch-installer-2.11.0"),
    ],
)
@pytest.mark.parametrize("newest", [False, True])
def test_it_is_pulled_under_the_vendors_name(
    registry: Registry, dest: Path, layout: Path, release: str, system: str, name: str, newest: bool
) -> None:
    assert container_image.shelve(layout, dest, release, system) == f"{name}:{release}"
    config, layers = registry.pull(name, "latest" if newest else release)
    assert layers[0] == BASE
    assert len(layers) == 2
    with tarfile.open(fileobj=io.BytesIO(layers[1])) as archive:
        names = archive.getnames()
        library = archive.extractfile("./usr/lib/habanalabs/libhlml.so")
        assert library is not None
        assert release.encode() in library.read()
    assert "./usr/bin/hl-smi" in names
    assert not [each for each in names if "modules" in each or "firmware/" in each], "drivers are the host's"
    settings = dict(line.split("=", 1) for line in config["config"]["Env"])
    assert settings["GC_KERNEL_PATH"] == "/usr/lib/habanalabs/libtpc_kernels.so"
    assert settings["RDMA_CORE_LIB"] == "/opt/habanalabs/rdma-core/src/build/lib"
    assert settings.get("OS_NUMBER") == {"ubuntu24.04": "2404", "ubuntu22.04": "2204"}.get(system)
    assert settings["FI_EFA_USE_DEVICE_RDMA"] == ("0" if "rhel" in system else "1")
    assert settings["PATH"].endswith(":/bin")
    assert "LD_PRELOAD" not in settings, "tcmalloc is not in the node image"
    assert config["config"]["Cmd"] == ["/bin/bash"]
    assert "StopSignal" not in config["config"]
    assert "simulated" in config["config"]["Labels"]["org.opencontainers.image.description"]


def test_it_speaks_as_a_registry(registry: Registry, dest: Path, layout: Path) -> None:
    name, _, tag = container_image.shelve(layout, dest, "1.23.0-695", "ubuntu24.04").rpartition(":")
    assert registry.get("")[1].headers["Docker-Distribution-Api-Version"] == "registry/2.0"
    content, _ = registry.get(f"{name}/manifests/{tag}")
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert registry.get(f"{name}/manifests/{digest}")[0] == content
    empty, head = registry.get(f"{name}/manifests/{tag}", "HEAD")
    assert (empty, head.headers["Content-Type"], head.headers["Content-Length"]) == (b"", MANIFEST, str(len(content)))
    layer = json.loads(content)["layers"][0]["digest"]
    assert registry.get(f"{name}/blobs/{layer}")[1].url.startswith("http://localhost:"), "blobs are downloads too"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        registry.get(f"{name}/manifests/1.23.0-696")


def test_the_file_system_is_there_once_for_all_its_images(dest: Path, layout: Path) -> None:
    for release in ("1.22.0-740", "1.23.0-695"):
        for system in container_image.systems(release):
            container_image.shelve(layout, dest, release, system)
    base = [path for path in dest.rglob("*") if path.is_file() and path.read_bytes() == BASE]
    assert len(base) == 2 * 4
    assert len({path.stat().st_ino for path in base}) == 1


@pytest.mark.parametrize(
    ("release", "system", "sentence"),
    [
        ("1.24.2-481", "ubuntu24.04", "No public source names a PyTorch version of release 1.24.2-481: give one of"),
        (
            "1.23.0-695",
            "debian12",
            "Release 1.23.0-695 has no image for debian12: give one of ubuntu22.04, ubuntu24.04",
        ),
        (
            "1.20.1-97",
            "rhel9.6",
            "Release 1.20.1-97 has no image for rhel9.6: give one of ubuntu22.04, ubuntu24.04, rhel9.4.",
        ),
        ("1.16.2-2", "ubuntu24.04", "Release 1.16.2-2 has no image for ubuntu24.04: give one of ubuntu22.04."),
    ],
)
def test_no_name_is_made_up(dest: Path, layout: Path, release: str, system: str, sentence: str) -> None:
    with pytest.raises(SimulatorError, match=f"^{sentence}"):
        container_image.shelve(layout, dest, release, system)
    assert not dest.exists()
