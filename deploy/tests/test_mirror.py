"""A mirror of one release over loopback http: whole and sealed, each file once, and every difference named."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, Deploy
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.mirror import apt, dnf, fill
from gaudi3_deploy.mirror.download import Folder, Wanted
from gaudi3_deploy.mirror.sealed import UNFINISHED

from gaudi3_simulator.vendor.pytorch import paths
from gaudi3_simulator.vendor.repository import build_repository

RELEASE, OLDER = "1.23.0-695", "1.22.0-740"
TARBALL = b"a tarball of the vendor's" * 4000
JAMMY = ("--release", RELEASE, "--system", "Ubuntu 22.04", "--system", "ubuntu24.04")


class Server:
    """A folder over http, with ranges, what was asked for, and connections that end too soon."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.cut: dict[str, int] = {}
        """Bytes after which the next answer of a path ends."""
        server = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range", "")
                server.asked.append(("GET", self.path, asked))
                path = Path(self.translate_path(self.path))
                if path.is_dir():
                    super().do_GET()
                    return
                if not path.is_file():
                    self.send_error(404)
                    return
                content, tag = path.read_bytes(), f'"{hashlib.sha256(path.read_bytes()).hexdigest()}"'
                begin = int(asked[6:-1]) if asked and self.headers.get("If-Range", tag) == tag else 0
                if begin >= len(content) > 0:
                    self.send_error(416)
                    return
                self.send_response(206 if begin else 200)
                self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(content) - begin))
                self.end_headers()
                self.wfile.write(content[begin : server.cut.pop(self.path, None)])

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *given: Handler(*given, directory=str(folder))  # type: ignore[arg-type]
        )  # fmt: skip
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def count(self, ending: str) -> int:
        """How often a file was asked for."""
        return sum(path.endswith(ending) for _method, path, _range in self.asked)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated vendor's host: its signed apt repository with two releases, and a tarball."""
    root = tmp_path_factory.mktemp("vendor") / "vault"
    build_repository(root, (OLDER, RELEASE))
    for path in paths(root, RELEASE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TARBALL)
    return root


@pytest.fixture
def server(vault: Path, tmp_path: Path) -> Iterator[Server]:
    """A copy of that host that a test may spoil."""
    shutil.copytree(vault, tmp_path / "vault")
    serving = Server(tmp_path / "vault")
    yield serving
    serving.server.shutdown()
    serving.server.server_close()


def request(server: Server, *systems: str, pytorch: bool = True) -> fill.Request:
    """What to mirror from the server."""
    return fill.Request(RELEASE, systems or ("Ubuntu 22.04",), f"{server.url}/artifactory", pytorch)


def test_a_mirror_is_made_sealed_verified_and_named_in_variables(deploy: Deploy, server: Server, vault: Path) -> None:
    vendor = ("--vault", f"{server.url}/artifactory")
    said = deploy.run("mirror", "fill", "mirror", *JAMMY, *vendor).splitlines()
    mirror = deploy.folder / "mirror"
    digest = hashlib.sha256((mirror / LOCK).read_bytes()).hexdigest()
    assert said[-1] == f"lock.json has SHA-256 {digest}"
    lock = json.loads((mirror / LOCK).read_text())
    assert (lock["schema"], lock["release"]) == (1, RELEASE)
    files = {each["path"]: each for each in lock["files"]}
    assert re.fullmatch(rf"mirror: {len(files)} files of {RELEASE}, .* kB, {len(files)} fetched now", said[-2])
    # Signed files are the vendor's to the byte, so that nodes verify the vendor's key.
    for path, each in files.items():
        assert (mirror / path).read_bytes() == (vault / path).read_bytes()
        assert each["sha256"] == hashlib.sha256((vault / path).read_bytes()).hexdigest()
        assert (each["size"], each["origin"]) == ((vault / path).stat().st_size, f"{server.url}/{path}")
    assert {"jammy", "noble"} == {path.split("/")[3] for path in files if path.endswith("/InRelease")}
    # Of the two releases that the index lists, only the packages of one.
    assert sorted(path.rpartition("_")[0] for path in files if path.endswith(".deb")) == sorted(
        path.relative_to(vault).as_posix().rpartition("_")[0] for path in vault.rglob(f"*_{RELEASE}_*.deb")
    )
    assert {method + path for method, path, _range in server.asked if server.count(path) > 1} == set()

    said = deploy.run("mirror", "verify", "mirror", "--lock-sha256", digest)
    assert said.endswith(", all as lock.json says\n")
    variables = yaml.safe_load(deploy.run("mirror", "variables", "mirror", "https://mirror.example.org/gaudi/"))
    assert variables == {
        "synapseai_release": RELEASE,
        "synapseai_repository_url": "https://mirror.example.org/gaudi/artifactory/debian",
        "synapseai_key_url": "https://mirror.example.org/gaudi/artifactory/api/gpg/key/public",
        "pytorch_repository_url": "https://mirror.example.org/gaudi/artifactory/gaudi-pt-modules",
        "pytorch_sha256": hashlib.sha256(TARBALL).hexdigest(),
    }

    server.asked.clear()
    assert f'"lock": "{digest}"' in deploy.run("mirror", "fill", "mirror", *JAMMY, *vendor, "--json")
    assert server.count(".deb") == server.count("modules-v2.9.0_1.23.0_695.tgz") == server.count("Packages.gz") == 0
    assert hashlib.sha256((mirror / LOCK).read_bytes()).hexdigest() == digest

    # One flipped byte, a missing file, a file of another release, one more: each by name.
    flipped = mirror / "artifactory/api/gpg/key/public"
    flipped.write_bytes(flipped.read_bytes()[:-1] + b"!")
    (mirror / "artifactory/debian/dists/noble/InRelease").unlink()
    other = f"artifactory/debian/pool/habanalabs-thunk/habanalabs-thunk_{OLDER}_all.deb"
    shutil.copy(vault / other, mirror / other)
    (mirror / "notes.txt").touch()
    assert deploy.run("mirror", "verify", "mirror", code=1).splitlines()[:-1] == [
        "artifactory/api/gpg/key/public: was changed, its SHA-256 is not what the lock says",
        "artifactory/debian/dists/noble/InRelease: is missing",
        f"{other}: is of release {OLDER}, and the mirror is of {RELEASE}",
        "notes.txt: is not in the lock",
    ]
    refused = deploy.run("mirror", "fill", "mirror", "--release", OLDER, "--system", "Ubuntu 22.04", *vendor, code=2)
    assert "is a mirror of 1.23.0-695, and one mirror has one release: give another folder for 1.22.0-740." in refused
    (mirror / LOCK).write_text((mirror / LOCK).read_text().replace(server.url, "https://elsewhere"))
    assert "it was changed after it was sealed" in deploy.run(
        "mirror", "verify", "mirror", "--lock-sha256", digest, code=1
    )


def test_requests_that_cannot_be(deploy: Deploy) -> None:
    for arguments, sentence in (
        (("--release", "1.23.0-1", "--system", "Ubuntu 22.04"), "--release is '1.23.0-1': give one of 1.16.0-"),
        (("--release", RELEASE, "--system", "Debian 12"), "Release 1.23.0-695 is not for Debian 12: give --system as"),
        ((*JAMMY, "--vault", "http://me:secret@x/y"), "--vault has to be an http or https address without a user"),
        ((*JAMMY, "--vault", "file:///srv"), "--vault has to be an http or https address without a user"),
    ):
        assert sentence in deploy.run("mirror", "fill", "mirror", *arguments, code=2)
    assert not (deploy.folder / "mirror").exists()
    (deploy.folder / "poisoned.txt").write_text("Lightning==2.6.3 \\\n    --hash=sha256:00\n")
    said = deploy.run("mirror", "fill", "mirror", *JAMMY, "--requirements", "poisoned.txt", code=2)
    assert "poisoned.txt has lightning 2.6.3, which steals credentials as soon as it is imported" in said
    deploy.folder.joinpath("full").mkdir()
    deploy.folder.joinpath("full/mine").touch()
    assert "is not empty and has no lock.json" in deploy.run("mirror", "fill", "full", *JAMMY, code=2)
    assert "has no lock.json" in deploy.run("mirror", "verify", "full", code=2)


def test_a_run_that_ended_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    where, asked = tmp_path / "mirror", request(server)
    torch = paths(Path(), RELEASE)[0].as_posix()
    server.cut[f"/{torch}"] = 70_000
    with pytest.raises(DeployError, match=r"could not be fetched \(.*\): start the command again, it goes on\.$"):
        fill.fill(where, asked, list[str]().append)
    assert not (where / LOCK).exists() and not (where / torch).exists()
    server.asked.clear()
    lock, _fetched = fill.fill(where, asked, list[str]().append)
    assert [each for each in server.asked if each[1].endswith((".deb", "modules-v2.9.0_1.23.0_695.tgz"))] == [
        ("GET", f"/{torch}", "bytes=70000-")
    ]
    assert (where / torch).read_bytes() == TARBALL and not (where / UNFINISHED).exists()
    assert lock.files[torch].sha256 == hashlib.sha256(TARBALL).hexdigest()

    # What is begun and has changed at its source since is begun anew.
    shutil.rmtree(where)
    server.cut[f"/{torch}"] = 70_000
    with pytest.raises(DeployError):
        fill.fill(where, asked, list[str]().append)
    (tmp_path / "vault" / torch).write_bytes(TARBALL[::-1])
    fill.fill(where, asked, list[str]().append)
    assert (where / torch).read_bytes() == TARBALL[::-1]


def test_what_is_not_as_its_index_says_never_gets_its_name(server: Server, tmp_path: Path) -> None:
    where = tmp_path / "mirror"
    spoilt = next((tmp_path / "vault").rglob(f"habanalabs-graph_{RELEASE}_*.deb"))
    content = spoilt.read_bytes()
    spoilt.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DeployError, match=r"habanalabs-graph.* is not what the index that names it says"):
        fill.fill(where, request(server, pytorch=False), list[str]().append)
    assert not (where / LOCK).exists() and list(where.rglob("habanalabs-graph*.deb")) == []
    spoilt.write_bytes(content)
    fill.fill(where, request(server, pytorch=False), list[str]().append)
    assert (where / spoilt.relative_to(tmp_path / "vault")).read_bytes() == content


def test_a_disk_that_is_too_small_is_told_before_anything_large(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10**6, 0, 90_000))  # type: ignore[attr-defined]
    with pytest.raises(DeployError, match=r"mirror has 90\.0 kB free, and the mirror needs .* more: make room"):
        fill.fill(tmp_path / "mirror", request(server), list[str]().append)
    assert server.count(".deb") == server.count(".tgz") == 0


def test_paths_of_an_index_stay_in_the_folder(server: Server, tmp_path: Path) -> None:
    folder = Folder.open(tmp_path / "mirror", RELEASE, list[str]().append)
    for path in ("../up", "a/../../up", "/etc/passwd", "a//b", LOCK, ".unfinished/lock.json", "a\\b", "a\nb"):
        with pytest.raises(DeployError, match=r"which leaves the mirror's folder\.$"):
            folder.fetch([Wanted(path, f"{server.url}/x", "0" * 64, 1)])
    with pytest.raises(DeployError, match=rf"is of release {OLDER}, and the mirror is of {RELEASE}\.$"):
        folder.fetch([Wanted(f"pool/habanalabs-thunk_{OLDER}_all.deb", f"{server.url}/x", "0" * 64, 1)])
    (tmp_path / "mirror" / UNFINISHED / LOCK).write_text('{"schema": 2}')
    with pytest.raises(UsageError, match=r"has schema 2, which a later gaudi3-deploy has written: use that one\.$"):
        Folder.open(tmp_path / "mirror", RELEASE, list[str]().append)


def test_an_index_without_the_release_says_what_it_has(server: Server, tmp_path: Path) -> None:
    folder = Folder.open(tmp_path / "mirror", "1.24.0-1007", list[str]().append)
    with pytest.raises(DeployError, match=rf"has no packages of 1\.24\.0-1007; it has {OLDER}, {RELEASE}\.$"):
        apt.packages(folder, f"{server.url}/artifactory/debian", "artifactory/debian", "jammy")


PRIMARY = """<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="3">
{}</metadata>
"""
PACKAGE = """<package type="rpm"><name>{name}</name><arch>x86_64</arch><version epoch="0" ver="{ver}" rel="{rel}"/>
<checksum type="sha256" pkgid="YES">{digest}</checksum><size package="{size}" installed="1" archive="1"/>
<location href="{name}-{ver}-{rel}.x86_64.rpm"/></package>
"""
REPOMD = """<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo" xmlns:rpm="http://linux.duke.edu/metadata/rpm">
<data type="primary"><checksum type="sha256">{digest}</checksum>
<location href="repodata/{digest}-primary.xml.gz"/><size>{size}</size></data></repomd>
"""


def test_an_rpm_repository_with_its_signature_and_one_release(server: Server, tmp_path: Path) -> None:
    shelf = tmp_path / "vault/artifactory/rhel/9/9.6"
    (shelf / "repodata").mkdir(parents=True)
    rows = ""
    for name, ver, rel in (
        ("habanalabs", "1.23.0", "695.el9"),
        ("habanalabs-thunk", "1.23.0", "695.el9"),
        ("habanalabs-thunk", "1.22.0", "740.el9"),
        ("other", "1.23.0", "695.el9"),
    ):
        content = f"{name} {ver}".encode()
        (shelf / f"{name}-{ver}-{rel}.x86_64.rpm").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        rows += PACKAGE.format(name=name, ver=ver, rel=rel, digest=digest, size=len(content))
    primary = gzip.compress(PRIMARY.format(rows).encode())
    digest = hashlib.sha256(primary).hexdigest()
    (shelf / f"repodata/{digest}-primary.xml.gz").write_bytes(primary)
    (shelf / "repodata/repomd.xml").write_text(REPOMD.format(digest=digest, size=len(primary)))
    (shelf / "repodata/repomd.xml.asc").write_text("its signature")
    key = tmp_path / "vault/artifactory/gaudi-general/keyPairs/primary/public"
    key.parent.mkdir(parents=True)
    key.write_text("the key")
    lock, _fetched = fill.fill(tmp_path / "mirror", request(server, "RedHat 9.6", pytorch=False), list[str]().append)
    below = "artifactory/rhel/9/9.6"
    assert sorted(lock.files) == [
        "artifactory/gaudi-general/keyPairs/primary/public",
        f"{below}/habanalabs-1.23.0-695.el9.x86_64.rpm",
        f"{below}/habanalabs-thunk-1.23.0-695.el9.x86_64.rpm",
        f"{below}/repodata/{digest}-primary.xml.gz",
        f"{below}/repodata/repomd.xml",
        f"{below}/repodata/repomd.xml.asc",
    ]
    assert fill.variables(lock, "http://m")["synapseai_rpm_url"] == (
        "http://m/artifactory/rhel/9/{{ ansible_facts.distribution_version }}"
    )
    (shelf / "repodata/repomd.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]>' + REPOMD)
    folder = Folder.open(tmp_path / "other", RELEASE, list[str]().append)
    with pytest.raises(DeployError, match=r"repomd\.xml declares a document type, which metadata of dnf never do\.$"):
        dnf.packages(folder, f"{server.url}/{below}", below)


def test_wheels_by_their_hashes_and_the_index_that_pip_reads(deploy: Deploy, server: Server, tmp_path: Path) -> None:
    name = "tiny_thing-1.0+cpu-py3-none-any.whl"
    page = tmp_path / "vault/simple/tiny-thing"
    page.mkdir(parents=True)
    with zipfile.ZipFile(page / name, "w") as wheel:
        for path, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0+cpu\n"),
            ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ):
            wheel.writestr(f"tiny_thing-1.0+cpu.dist-info/{path}", text)
    digest = hashlib.sha256((page / name).read_bytes()).hexdigest()
    (page / "index.html").write_text(f'<a href="{name.replace("+", "%2B")}">{name}</a>')
    (deploy.folder / "pins.txt").write_text(f"tiny-thing==1.0+cpu --hash=sha256:{digest}\n")
    deploy.run(
        "mirror", "fill", "mirror", *JAMMY, "--no-pytorch", "--vault", f"{server.url}/artifactory",
        "--requirements", "pins.txt", "--index", f"{server.url}/none/", "--extra-index", f"{server.url}/simple/",
    )  # fmt: skip
    deploy.run("mirror", "verify", "mirror")
    mirror = deploy.folder / "mirror"
    assert (mirror / "pypi/wheels" / name).read_bytes() == (page / name).read_bytes()
    link = f"../../wheels/{name.replace('+', '%2B')}#sha256={digest}"
    assert f'<a href="{link}">{name}</a>' in (mirror / "pypi/simple/tiny-thing/index.html").read_text()
    assert yaml.safe_load(deploy.run("mirror", "variables", "mirror", "http://m:80")) == {
        "synapseai_release": RELEASE,
        "synapseai_repository_url": "http://m:80/artifactory/debian",
        "synapseai_key_url": "http://m:80/artifactory/api/gpg/key/public",
        "pytorch_pip_index_url": "http://m:80/pypi/simple",
        "serving_pip_index_url": "http://m:80/pypi/simple",
        "serving_torch_index_url": "http://m:80/pypi/simple",
        "pytorch_pip_index_plain_http": True,
        "serving_pip_index_plain_http": True,
    }


def test_the_sources_of_the_wrapper_are_those_that_the_role_compiles() -> None:
    url, digests = fill.wrapper_of(ROOT)
    assert url.startswith("https://raw.githubusercontent.com/HabanaAI/hccl_ofi_wrapper/")
    assert [name for name, _digest in digests] == [
        "hccl_ofi_wrapper.cpp",
        "hccl_ofi_wrapper.h",
        "hccl_ofi_wrapper_interface.h",
    ]
