"""Container images in a mirror: by their digests, once for all that share a blob, and resumed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Deploy
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.mirror import images
from gaudi3_deploy.mirror.download import Folder
from gaudi3_deploy.mirror.sealed import release_in, verify

RELEASE = "1.23.0-695"
BELOW = "gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0"
NAME = f"vault.habana.ai/{BELOW}:{RELEASE}"
OCI = "application/vnd.oci.image"


def digest_of(content: bytes) -> str:
    """As registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """A registry over loopback http that wants a token, sends blobs to another path, and can cut connections."""

    def __init__(self) -> None:
        self.shelf: dict[str, tuple[bytes, str]] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.cut: dict[str, int] = {}
        self.tokens = 0
        shelf = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shelf.asked.append((self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")))
                if self.path.startswith("/token?"):
                    shelf.tokens += 1
                    self.answer(200, json.dumps({"token": f"t{shelf.tokens}"}).encode(), "application/json")
                elif self.path.startswith("/storage/"):
                    self.stored("/v2/" + self.path.removeprefix("/storage/"))
                elif not re.fullmatch("Bearer t[1-9]", self.headers.get("Authorization") or ""):
                    where = f'Bearer realm="{shelf.url}/token",service="made",scope="repository:x:pull"'
                    self.answer(401, b"", "text/plain", ("WWW-Authenticate", where))
                elif "/blobs/" in self.path and self.path in shelf.shelf:
                    self.answer(307, b"", "", ("Location", self.path.replace("/v2/", "/storage/")))
                else:
                    self.stored(self.path)

            do_HEAD = do_GET

            def stored(self, path: str) -> None:
                content, kind = shelf.shelf.get(path, (None, ""))
                if content is None:
                    self.answer(404, b"", "")
                    return
                begin = int((self.headers.get("Range") or "bytes=0-")[6:-1])
                headers = ("Content-Length", str(len(content) - begin))
                self.send_response(206 if begin else 200)
                self.send_header("Content-Type", kind)
                self.send_header(*headers)
                self.end_headers()
                if self.command == "HEAD":
                    return
                self.wfile.write(content[begin : shelf.cut.pop(path, None)])

            def answer(self, status: int, body: bytes, kind: str, *more: tuple[str, str]) -> None:
                self.send_response(status)
                for name, value in (*more, ("Content-Type", kind), ("Content-Length", str(len(body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def blob(self, content: bytes, repository: str = BELOW) -> dict[str, Any]:
        """Put a blob on the shelf; its descriptor."""
        self.shelf[f"/v2/{repository}/blobs/{digest_of(content)}"] = (content, "application/octet-stream")
        return {"digest": digest_of(content), "size": len(content)}

    def manifest(self, found: dict[str, Any], tag: str = "", repository: str = BELOW) -> dict[str, Any]:
        """Put a manifest on the shelf; its descriptor."""
        content = json.dumps(found).encode()
        for name in filter(None, (tag, digest_of(content))):
            self.shelf[f"/v2/{repository}/manifests/{name}"] = (content, found["mediaType"])
        return {"mediaType": found["mediaType"], "digest": digest_of(content), "size": len(content)}

    def image(self, text: str, tag: str = RELEASE, repository: str = BELOW) -> list[dict[str, Any]]:
        """An image for two machines, of a layer that all have and one of its own; its blobs."""
        layers, ids = [], []
        for path, body in (("base", "of all"), ("own", text * 2000)):
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as archive:
                info = tarfile.TarInfo(path)
                info.size = len(body)
                archive.addfile(info, io.BytesIO(body.encode()))
            ids.append(digest_of(packed.getvalue()))
            blob = self.blob(gzip.compress(packed.getvalue(), mtime=0), repository)
            layers.append({"mediaType": f"{OCI}.layer.v1.tar+gzip", **blob})
        content = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}, "config": {}}
        config = {"mediaType": f"{OCI}.config.v1+json", **self.blob(json.dumps(content).encode(), repository)}
        kind = {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json"}
        part = self.manifest({**kind, "config": config, "layers": layers}, repository=repository)
        parts = [
            {**part, "digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "arm64"}},
            {**part, "platform": {"os": "linux", "architecture": "amd64"}},
        ]
        index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": parts}
        return [self.manifest(index, tag, repository), part, config, *layers]


@pytest.fixture
def registry() -> Iterator[Registry]:
    serving = Registry()
    yield serving
    serving.server.shutdown()
    serving.server.server_close()


def filled(where: Path, registry: Registry, *names: str) -> dict[str, Any]:
    """The files of a mirror that has images alone."""
    folder = Folder.open(where, RELEASE, list[str]().append)
    found = [images.image(folder, name, registry.url) for name in names or (NAME,)]
    folder.fetch({each.path: each for one in found for each in one.wanted}.values())
    for each in found:
        each.finish(folder)
    return dict(folder.seal().files)


def test_an_image_is_kept_by_its_digests(registry: Registry, tmp_path: Path) -> None:
    parts = registry.image("one")
    where = tmp_path / "mirror"
    files = filled(where, registry)
    place = f"images/vault.habana.ai/{BELOW}/{RELEASE}"
    blobs = {f"images/blobs/sha256/{each['digest'][7:]}": each for each in parts}
    assert set(files) == {*blobs, f"{place}/index.json", f"{place}/oci-layout"}
    for path, each in blobs.items():
        kind = "manifests" if each in parts[:2] else "blobs"
        origin = f"{registry.url}/v2/{BELOW}/{kind}/{each['digest']}"
        assert (files[path].sha256, files[path].size, files[path].origin) == (
            each["digest"][7:],
            each["size"],
            origin,
        )
        assert digest_of((where / path).read_bytes()) == each["digest"]
    assert registry.tokens == 1, "one token, asked for once"
    assert {token for path, _range, token in registry.asked if path.startswith("/storage/")} == {""}, (
        "no token for the host of the files"
    )


def test_images_share_their_blobs_and_stay_what_they_are(registry: Registry, tmp_path: Path) -> None:
    first = registry.image("one")
    other = "vault.habana.ai/gaudi-docker/other:7"
    second = registry.image("two", "7", "gaudi-docker/other")
    files = filled(tmp_path / "mirror", registry, NAME, other)
    assert first[3] == second[3], "the layer that all have"
    assert sum(path.startswith("images/blobs/") for path in files) == 9
    assert sum(path.endswith(first[3]["digest"]) and path.startswith("/v2/") for path, _r, _t in registry.asked) == 1

    registry.image("three")  # the tag is another image now
    registry.asked.clear()
    assert filled(tmp_path / "mirror", registry, NAME, other) == files and registry.asked == []
    gone = tmp_path / "mirror/images/blobs/sha256" / first[4]["digest"][7:]
    gone.unlink()
    assert filled(tmp_path / "mirror", registry, NAME) == files and gone.is_file()


def test_an_image_that_was_cut_goes_on_and_a_flipped_byte_never_gets_its_name(
    registry: Registry, tmp_path: Path
) -> None:
    parts = registry.image("one")
    path = f"/v2/{BELOW}/blobs/{parts[4]['digest']}"
    where = tmp_path / "mirror"
    registry.cut[path] = 60
    with pytest.raises(DeployError, match=r"could not be fetched \(.*\): start the command again, it goes on\.$"):
        filled(where, registry)
    assert not (where / LOCK).exists() and list(where.rglob("index.json")) == []
    registry.asked.clear()
    filled(where, registry)
    stored = path.replace("/v2/", "/storage/")
    assert [each[1] for each in registry.asked if each[0] == stored] == ["bytes=60-"]
    assert [each[0] for each in registry.asked if each[0].startswith("/storage/")] == [stored], "nothing else"
    assert verify(where)[1] == []

    shutil.rmtree(where)
    content, kind = registry.shelf[path]
    registry.shelf[path] = (content[:-1] + bytes([content[-1] ^ 1]), kind)
    with pytest.raises(DeployError, match=r"is not what the index that names it says \(SHA-256 differs\)"):
        filled(where, registry)
    assert not (where / "images/blobs/sha256" / parts[4]["digest"][7:]).exists()


def test_what_a_registry_may_not_answer(registry: Registry, tmp_path: Path) -> None:
    parts = registry.image("one")
    kind = {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json"}
    for found, sentence in (
        ({**kind, "config": {"digest": "sha256:../../up", "size": 1}, "layers": []}, "without its SHA-256 or size"),
        ({**kind, "config": {**parts[2], "size": -1}, "layers": []}, "without its SHA-256 or size"),
        ({**kind, "config": parts[2], "layers": ["x"]}, "without its SHA-256 or size"),
        ({**kind, "config": parts[2]}, "something else than a manifest of the image"),
        ({**kind, "manifests": [{"digest": "x", "platform": {"architecture": "arm64"}}]}, "has no part for amd64"),
    ):
        registry.manifest(found, RELEASE)
        with pytest.raises(DeployError, match=sentence):
            filled(tmp_path / "mirror", registry)
    with pytest.raises(DeployError, match=rf"{RELEASE}9 was refused by its registry for the image .*: 404 Not Found"):
        filled(tmp_path / "mirror", registry, f"{NAME}9")
    assert not (tmp_path / "mirror" / LOCK).exists()


def test_names_of_images() -> None:
    systems = ("Ubuntu 24.04", "RHEL 9.6")
    assert images.names(RELEASE, systems, ("pytorch", "exporter", "mine/job:7", "mine/job:7")) == (
        NAME,
        NAME.replace("ubuntu24.04", "rhel9.6"),
        f"vault.habana.ai/gaudi-metric-exporter/metric-exporter:{RELEASE}",
        "mine/job:7",
    )
    for given, sentence in (
        ("Mine/Job", "--image is 'Mine/Job': give one of pytorch, vllm, exporter, or a name as REGISTRY/NAME:TAG."),
        (NAME.replace(RELEASE, "1.22.0-740"), "is of release 1.22.0-740, and one mirror has one release: 1.23.0-695."),
        (NAME.replace("1.23.0/", "1.22.0/").replace(RELEASE, "latest"), "is of release 1.22.0, and one mirror has"),
    ):
        with pytest.raises(UsageError) as caught:
            images.names(RELEASE, systems, (given,))
        assert sentence in str(caught.value)
    assert release_in(f"images/vault.habana.ai/{BELOW}/1.22.0-740/index.json") == "1.22.0-740"
    assert release_in("images/docker.io/mine/job/1.22.0-740/index.json") == ""


def test_the_command_has_images_and_verify_names_a_spoilt_one(
    deploy: Deploy, registry: Registry, tmp_path: Path
) -> None:
    from gaudi3_simulator.vendor.repository import build_repository

    parts = registry.image("one")
    root = tmp_path / "vault"
    build_repository(root, (RELEASE,))
    for path in root.rglob("*"):
        if path.is_file():
            registry.shelf[f"/storage/{path.relative_to(root)}".replace("/storage/", "/v2/", 1)] = (
                path.read_bytes(),
                "",
            )
    vault = ("--vault", f"{registry.url}/storage/artifactory", "--registry", registry.url)
    arguments = ("--release", RELEASE, "--system", "Ubuntu 24.04", "--no-pytorch", *vault, "--image", "pytorch")
    deploy.run("mirror", "fill", "mirror", *arguments)
    layer = deploy.folder / "mirror/images/blobs/sha256" / parts[4]["digest"][7:]
    content = layer.read_bytes()
    layer.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert verify(deploy.folder / "mirror")[1] == [
        f"images/blobs/sha256/{layer.name}: was changed, its SHA-256 is not what the lock says"
    ]
