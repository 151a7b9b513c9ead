"""A mirror whose vendor is gone: what was sealed stays, whatever answers under the vendor's address now."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from gaudi3_deploy import given_file
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.mirror import fill
from gaudi3_deploy.mirror.download import Folder, Wanted
from gaudi3_deploy.mirror.sealed import verify

from gaudi3_simulator.vendor.pytorch import paths
from gaudi3_simulator.vendor.repository import build_repository
from tests.served_folder import served

RELEASE = "1.23.0-695"
PAGE = b"\n<!DOCTYPE html><html><body>This domain is for sale</body></html>"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole mirror, of a vendor who answered."""
    root = tmp_path_factory.mktemp("vendor")
    build_repository(root / "vault", [RELEASE])
    tarball = paths(root / "vault", RELEASE)[0]
    tarball.parent.mkdir(parents=True)
    tarball.write_bytes(b"tarball")
    with served(root / "vault") as url:
        _fill(root / "mirror", url)
    return root / "mirror"


@pytest.fixture(name="mirror")
def of_its_own(sealed: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    shutil.copytree(sealed, tmp_path / "mirror")
    return tmp_path / "mirror"


def _fill(where: Path, url: str) -> list[str]:
    said: list[str] = []
    fill.fill(where, fill.Request(RELEASE, ("Ubuntu 22.04",), f"{url}/artifactory"), said.append)
    return said


@contextmanager
def by_name(answers: Mapping[str, bytes | int]) -> Iterator[str]:
    """The address of a server that says what it is to say of a name, or ends with that code; of the name "" of any."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = answers.get(self.path.rpartition("/")[2], answers.get("", 404))
            content = b"" if isinstance(said, int) else said
            self.send_response(said if isinstance(said, int) else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def answering(code: int, content: bytes) -> AbstractContextManager[str]:
    """The address of a server that says the same of every path."""
    return by_name({"": content if code == 200 else code})


@pytest.mark.parametrize(
    ("code", "content", "why"),
    [
        (200, PAGE, "its server answers with a web page"),
        (404, b"", "its server answers 404"),
        (503, b"", "its server answers 503"),
    ],
    ids=["page", "404", "503"],
)
def test_what_was_sealed_stays_as_it_was(mirror: Path, code: int, content: bytes, why: str) -> None:
    before = (mirror / LOCK).read_bytes()
    with answering(code, content) as url:
        said = _fill(mirror, url)
    assert f"keep artifactory/debian/dists/jammy/InRelease ({why})" in said
    assert (mirror / LOCK).read_bytes() == before and verify(mirror)[1] == []


def test_a_server_that_is_not_there_is_no_hindrance_either(mirror: Path) -> None:
    with answering(200, b"") as url:
        pass
    said = _fill(mirror, url)
    kept = [line.split()[1] for line in said if line.startswith("keep ")]
    assert kept[:2] == ["artifactory/api/gpg/key/public", "artifactory/debian/dists/jammy/InRelease"]
    assert [line.split()[2].rpartition("/")[2] for line in said if line.startswith("leave out ")] == [
        "pytorch_modules_py311-v2.9.0_1.23.0_695.tgz"
    ]
    assert verify(mirror)[1] == []


@pytest.mark.parametrize("lost", [503, 404])
def test_a_new_index_is_not_sealed_with_the_old_signature(tmp_path: Path, lost: int) -> None:
    """Nodes would refuse the repository, and the mirror's verification would find nothing."""
    answers: dict[str, bytes | int] = {"Release": b"old", "Release.gpg": b"of old"}
    with by_name(answers) as url:
        wanted = [
            Wanted(f"dists/{name}", f"{url}/{name}", optional=name == "Release.gpg", settled=False) for name in answers
        ]
        first = Folder.open(tmp_path / "mirror", RELEASE, list[str]().append)
        first.fetch(wanted)
        first.seal()
        answers["Release"] = b"new"
        answers["Release.gpg"] = lost
        for _again in range(2):
            with pytest.raises(DeployError, match=r"^dists/Release is another one now, and http:.*/Release.gpg, which"):
                Folder.open(tmp_path / "mirror", RELEASE, list[str]().append).fetch(wanted)
        answers["Release.gpg"] = b"of new"
        last = Folder.open(tmp_path / "mirror", RELEASE, list[str]().append)
        last.fetch(wanted)
        last.seal()
    assert (tmp_path / "mirror/dists/Release.gpg").read_bytes() == b"of new" and verify(tmp_path / "mirror")[1] == []


def test_a_web_page_is_no_part_of_a_new_mirror(tmp_path: Path) -> None:
    with (
        answering(200, PAGE) as url,
        pytest.raises(DeployError, match=r"gpg/key/public answers with a web page and not with the file: give another"),
    ):
        _fill(tmp_path / "mirror", url)
    assert [path.name for path in (tmp_path / "mirror").rglob("*") if path.is_file()] == [LOCK]  # the unfinished one


def test_what_was_spoilt_is_not_kept(mirror: Path) -> None:
    (mirror / "artifactory/debian/dists/jammy/InRelease").write_text("spoilt")
    with answering(200, PAGE) as url, pytest.raises(DeployError, match=r"InRelease answers with a web page"):
        _fill(mirror, url)


def test_two_at_once_are_one_after_the_other(mirror: Path) -> None:
    held = os.open(mirror, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with pytest.raises(UsageError, match=r"mirror is being filled by another run: wait until it has ended"):
            _fill(mirror, "http://127.0.0.1:9")
    finally:
        os.close(held)
    assert verify(mirror)[1] == []


def test_a_web_server_of_another_user_can_hand_out_all_of_it(tmp_path: Path) -> None:
    build_repository(tmp_path / "vault", [RELEASE])
    mask = os.umask(0o077)
    try:
        with served(tmp_path / "vault") as url:
            request = fill.Request(RELEASE, ("Ubuntu 22.04",), f"{url}/artifactory", pytorch=False)
            fill.fill(tmp_path / "mirror", request, list[str]().append)
        assert os.umask(0o077) == 0o077, "afterwards it is the user's again"
    finally:
        os.umask(mask)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "mirror").rglob("*")}
    assert modes == {0o755, 0o644}


def test_what_a_disk_does_not_give_back_is_named(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mirrors are kept for years: one bad block is one line, and the rest is verified all the same."""
    real = hashlib.file_digest

    def digest(stream: Any, name: str) -> object:
        if stream.name.endswith("InRelease"):
            raise OSError(5, "Input/output error")
        return real(stream, name)

    monkeypatch.setattr(hashlib, "file_digest", digest)
    assert verify(mirror)[1] == ["artifactory/debian/dists/jammy/InRelease: cannot be read (input/output error)"]
    monkeypatch.setattr(given_file, "read_text", lambda _path: Path("/proc/self/mem").read_text())
    with pytest.raises(UsageError, match=r"lock\.json cannot be read \(input/output error\): mend that first\.$"):
        verify(mirror)


def test_of_a_folder_that_cannot_be_listed_nothing_is_missing(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(folder: Path, onerror: Callable[[OSError], None]) -> Iterator[tuple[str, list[str], list[str]]]:
        onerror(PermissionError(13, "Permission denied", str(folder)))
        return iter(())

    monkeypatch.setattr(os, "walk", walk)
    assert verify(mirror)[1] == [".: cannot be read (permission denied)"]


def test_a_disk_that_takes_nothing_is_one_sentence(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DeployError, match=r"mirror cannot be read or written \(no space left on device\): mend that"):
        _fill(mirror, "http://127.0.0.1:9")
