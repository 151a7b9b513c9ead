"""An image of a sealed mirror on a node: each part by its digest, under its name in podman, or refused by name."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import mirrored_image
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.container import Container
from ansible_collections.gaudi3.scale.plugins.module_utils._mirror import Sealed
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

WHERE = "http://mirror.example"
NAME = "vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0"
TAGGED = f"{NAME}:1.23.0-695"
PLACE = f"images/{NAME}/1.23.0-695"


def hexed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Mirror:
    """A mirror's folder with one image for two machines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("hello"))
        kind = "application/vnd.oci.image"
        self.layer = self.blob(gzip.compress(layer.getvalue(), mtime=0))
        ids = {"type": "layers", "diff_ids": [f"sha256:{hexed(layer.getvalue())}"]}
        self.config = self.blob(json.dumps({"architecture": "amd64", "os": "linux", "rootfs": ids}).encode())
        own: dict[str, Any] = {"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json"}
        own["config"] = {"mediaType": f"{kind}.config.v1+json", **self.config}
        own["layers"] = [{"mediaType": f"{kind}.layer.v1.tar+gzip", **self.layer}]
        part = {"mediaType": own["mediaType"], **self.blob(json.dumps(own).encode())}
        part["platform"] = {"os": "linux", "architecture": "amd64"}
        self.part = part
        index = {"schemaVersion": 2, "mediaType": f"{kind}.index.v1+json", "manifests": [part]}
        self.top = {"mediaType": index["mediaType"], **self.blob(json.dumps(index).encode())}
        self.write(f"{PLACE}/index.json", json.dumps({"schemaVersion": 2, "manifests": [self.top]}).encode())

    def blob(self, content: bytes) -> dict[str, Any]:
        self.write(f"images/blobs/sha256/{hexed(content)}", content)
        return {"digest": f"sha256:{hexed(content)}", "size": len(content)}

    def write(self, path: str, content: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(content)

    @property
    def sealed(self) -> Sealed:
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return Sealed("1.23.0-695", {str(each.relative_to(self.folder)): hexed(each.read_bytes()) for each in files})

    def open(self, url: str) -> IO[bytes]:
        return (self.folder / url.removeprefix(f"{WHERE}/")).open("rb")

    def find(self, image: str = TAGGED, sealed: Sealed | None = None) -> mirrored_image.Mirrored | None:
        return mirrored_image.find(self.open, sealed or self.sealed, WHERE, image)


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror")


def refusal(call: Callable[..., object], *given: object) -> str:
    with pytest.raises(Refusal) as caught:
        call(*given)
    return str(caught.value)


@pytest.mark.skipif(not Path("/usr/bin/podman").exists(), reason="podman is missing: it did NOT read the image")
def test_podman_has_it_under_its_name_and_by_its_digest(mirror: Mirror, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short:  # podman takes no long path for its run-time files
        store = ["--root", str(tmp_path / "store"), "--runroot", short, "--storage-driver", "vfs"]

        def run(argv: list[str]) -> tuple[int, str, str]:
            done = subprocess.run([argv[0], *store, *argv[1:]], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr

        for name in (TAGGED, f"{TAGGED}@{mirror.top['digest']}"):
            found = mirror.find(name)
            assert found is not None
            mirrored_image.take(run, mirror.open, found, Container("podman", name), str(tmp_path))
        _rc, said, _err = run(
            ["/usr/bin/podman", "images", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}"]
        )
        assert said.split() == [TAGGED, mirror.config["digest"]]
        pinned = Container("podman", f"{TAGGED}@{mirror.part['digest']}").reference
        asked = ["/usr/bin/podman", "image", "inspect", "--format", "{{.Id}}", pinned]
        assert run(asked)[1].strip() == mirror.config["digest"].removeprefix("sha256:")
    assert [path.name for path in tmp_path.iterdir()].count("mirror") == 1
    assert list(tmp_path.glob("gaudi3-image-*")) == [], "what was fetched goes"


def test_docker_has_an_archive_of_its_own_kind(mirror: Mirror, tmp_path: Path) -> None:
    loaded: dict[str, Any] = {}

    def run(argv: list[str]) -> tuple[int, str, str]:
        loaded["argv"] = argv[:-1]
        with tarfile.open(argv[-1]) as archive:
            loaded["files"] = sorted(each.name for each in archive if each.isfile())
            content = archive.extractfile("manifest.json")
            assert content
            loaded["rows"] = json.load(content)
        return 0, "", ""

    found = mirror.find()
    assert found is not None
    mirrored_image.take(run, mirror.open, found, Container("docker", TAGGED), str(tmp_path))
    layer, config = (f"blobs/sha256/{each['digest'][7:]}" for each in (mirror.layer, mirror.config))
    assert loaded["argv"] == ["/usr/bin/docker", "load", "--quiet", "--input"]
    assert loaded["rows"] == [{"Config": config, "RepoTags": [TAGGED], "Layers": [layer]}]
    assert {layer, config, "manifest.json"} <= set(loaded["files"])
    pinned = f"{TAGGED}@{mirror.top['digest']}"
    other = mirror.find(pinned)
    said = refusal(mirrored_image.take, run, mirror.open, other, Container("docker", pinned), str(tmp_path))
    assert said.startswith("docker knows an image by its digest only from a registry, and ")


def test_an_engine_that_does_not_take_it_is_quoted(mirror: Mirror, tmp_path: Path) -> None:
    def run(argv: list[str]) -> tuple[int, str, str]:
        return 125, "", "Error: no\nno space left on device\n"

    said = refusal(mirrored_image.take, run, mirror.open, mirror.find(), Container("podman", TAGGED), str(tmp_path))
    assert said == f"/usr/bin/podman does not take {TAGGED} of the mirror: no space left on device."
    assert list(tmp_path.glob("gaudi3-image-*")) == []


def test_the_folder_that_podman_reads_has_a_name_that_it_takes_for_an_image(mirror: Mirror, tmp_path: Path) -> None:
    asked: list[str] = []

    def run(argv: list[str]) -> tuple[int, str, str]:
        asked.extend(argv)
        return 1, "", "no"

    refusal(mirrored_image.take, run, mirror.open, mirror.find(), Container("podman", TAGGED), str(tmp_path))
    (folder,) = (each for each in asked if each.startswith("oci:"))
    assert re.fullmatch(r"gaudi3-image-[0-9a-f]{16}", Path(folder).name)


def test_an_image_of_another_registry_comes_from_there_and_the_vendors_must_be_in_the_mirror(mirror: Mirror) -> None:
    assert mirror.find("docker.io/mine/job:7") is None
    assert refusal(mirror.find, f"{NAME}:1.23.0-696") == (
        f"The mirror {WHERE} does not have the image {NAME}:1.23.0-696: add it with gaudi3-deploy mirror fill --image, "
        "or name an image of another registry."
    )


def test_another_digest_is_refused_before_anything_is_fetched(mirror: Mirror) -> None:
    other = "sha256:" + "1" * 64
    assert refusal(mirror.find, f"{TAGGED}@{other}") == (
        f"The mirror {WHERE} has {mirror.top['digest']} as {TAGGED}, and {other} is wanted: find out which is right, "
        "and fill a mirror with that."
    )


def test_one_flipped_byte_and_a_missing_part_are_refused_by_name(mirror: Mirror, tmp_path: Path) -> None:
    sealed = mirror.sealed
    for path in (f"{PLACE}/index.json", f"images/blobs/sha256/{mirror.part['digest'][7:]}"):
        content = (mirror.folder / path).read_bytes()
        mirror.write(path, content[:-1] + b"?")
        said = refusal(mirror.find, TAGGED, sealed)
        assert said.startswith(f"{WHERE}/{path} is not what the mirror's lock says (SHA-256 differs): do not install")
        mirror.write(path, content)
    found, layer = mirror.find(), mirror.folder / f"images/blobs/sha256/{mirror.layer['digest'][7:]}"
    content = layer.read_bytes()
    layer.write_bytes(content[:-1] + b"?")
    arguments = (None, mirror.open, found, Container("podman", TAGGED), str(tmp_path))
    assert f"{layer.name} is not what the mirror's lock says" in refusal(mirrored_image.take, *arguments)
    layer.unlink()
    assert f"{layer.name} cannot be fetched (" in refusal(mirrored_image.take, *arguments)
    assert refusal(mirror.find) == (
        f"The lock of the mirror {WHERE} does not have {mirror.layer['digest']} of the image {TAGGED}: fill it again."
    )
    assert list(tmp_path.glob("gaudi3-image-*")) == []


class Endless(io.RawIOBase):
    """A server that has what was asked for, and goes on sending."""

    def __init__(self, content: bytes) -> None:
        self.left, self.sent = content, 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0 and self.sent < 64 << 20, "a disk is full by now"
        piece, self.left = (self.left + bytes(size))[:size], self.left[size:]
        self.sent += size
        return piece


@pytest.mark.parametrize("which", ["layer", "config", "part", "top"])
def test_a_server_that_sends_without_end_fills_no_disk(
    mirror: Mirror, tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, about = mirror.find(), getattr(mirror, which)
    name = about["digest"].removeprefix("sha256:")
    endless = Endless((mirror.folder / f"images/blobs/sha256/{name}").read_bytes())
    written: list[int] = []
    monkeypatch.setattr(
        mirrored_image.shutil, "rmtree",
        lambda folder, **_more: written.append(sum(each.stat().st_size for each in Path(folder).rglob(name))),
    )  # fmt: skip

    def opened(url: str) -> Any:
        return endless if url.endswith(name) else mirror.open(url)

    said = refusal(mirrored_image.take, None, opened, found, Container("podman", TAGGED), str(tmp_path))
    assert said == (
        f"{WHERE}/images/blobs/sha256/{name} has more than the {about['size']} bytes that it may have: do not "
        "install from this mirror before gaudi3-deploy mirror verify finds nothing."
    )
    assert endless.sent <= about["size"] + 1 and written == [0]


def test_a_part_whose_size_nobody_says_is_refused(mirror: Mirror) -> None:
    content = json.loads((mirror.folder / f"{PLACE}/index.json").read_bytes())
    del content["manifests"][0]["size"]
    mirror.write(f"{PLACE}/index.json", json.dumps(content).encode())
    said = refusal(mirror.find)
    assert said == f"The mirror has no whole image {TAGGED}: fill it again with gaudi3-deploy mirror fill."


@pytest.mark.parametrize(
    "content", [b"[]", b"{", b'{"manifests": [7]}', b'{"manifests": [{"digest": "sha256:../up"}]}']
)
def test_what_is_no_image_is_said(mirror: Mirror, content: bytes) -> None:
    mirror.write(f"{PLACE}/index.json", content)
    said = refusal(mirror.find)
    assert said == f"The mirror has no whole image {TAGGED}: fill it again with gaudi3-deploy mirror fill."
