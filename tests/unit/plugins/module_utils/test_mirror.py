"""What a mirror's lock says to those who install from it, and where in a mirror each part of a release is."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import _mirror as mirror
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

WHERE = "http://mirror.example/gaudi"
RELEASE = "1.23.0-695"


def lock(**more: Any) -> bytes:
    files = [{"path": path, "sha256": "a" * 64, "size": 1, "origin": "x"} for path in ("a/b", "a/c", "key")]
    return json.dumps({"schema": 1, "release": RELEASE, "files": files, **more}).encode()


def refusal(call: Callable[..., object], *given: object) -> str:
    with pytest.raises(Refusal) as caught:
        call(*given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("given", "address"), [(None, ""), ("", ""), (f"{WHERE}/", WHERE), ("https://m:8443", "https://m:8443")]
)
def test_an_address(given: object, address: str) -> None:
    assert mirror.mirror_address(given) == address


@pytest.mark.parametrize(
    "given",
    [
        *("mirror.example", "ftp://m/x", "http://me:pass@m/x", ["http://m"], 7, "http://", "http://m:port/x"),
        *("http://[::1", "http://me:pass@[m/x", "http://m/a b", "http://m/a\nb", "http://m/x?a=b", "http://m/x#a"),
    ],
)
def test_an_address_that_is_none(given: object) -> None:
    said = refusal(mirror.mirror_address, given)
    assert said.startswith("gaudi_mirror has to be the http or https address of a folder") and "pass" not in said


def test_without_a_mirror_each_part_is_at_its_own_publisher() -> None:
    assert mirror.addresses("", "9.6") == {
        "apt": "https://vault.habana.ai/artifactory/debian",
        "apt_key": "https://vault.habana.ai/artifactory/api/gpg/key/public",
        "rpm": "https://vault.habana.ai/artifactory/rhel/9/9.6",
        "rpm_key": "https://vault.habana.ai/artifactory/gaudi-general/keyPairs/primary/public",
        "pytorch": "https://vault.habana.ai/artifactory/gaudi-pt-modules",
        "index": "",
        "torch": "https://download.pytorch.org/whl/cpu",
        "wrapper": "https://raw.githubusercontent.com/HabanaAI/hccl_ofi_wrapper/bea1d6f65e2be76f5f703403787cb8a3fde5ebaa",
        "grafana": "https://apt.grafana.com",
        "grafana_key": "https://apt.grafana.com/gpg.key",
    }


def test_with_a_mirror_every_part_is_there() -> None:
    assert all(each.startswith(f"{WHERE}/") for each in mirror.addresses(WHERE, "9.6").values())
    assert mirror.below(WHERE, f"{WHERE}/pypi/simple/") == "pypi/simple"
    assert mirror.below(WHERE, f"{WHERE}2/pypi") == mirror.below("", "/x") == mirror.below(WHERE, None) == ""


def test_a_lock_is_read() -> None:
    content = lock()
    digest = hashlib.sha256(content).hexdigest()
    sealed = mirror.lock_of(content, WHERE, digest.upper())
    assert (sealed.release, sorted(sealed.files)) == (RELEASE, ["a/b", "a/c", "key"])
    said = refusal(mirror.lock_of, content, WHERE, "0" * 64)
    assert said == (
        f"lock.json of the mirror {WHERE} has SHA-256 {digest}, not {'0' * 64} as gaudi_mirror_lock_sha256 says: it "
        "was changed after it was sealed, or is of another mirror."
    )


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"]
)
def test_what_answers_is_no_web_server_or_ends_early(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _address = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        said = refusal(mirror.sealed_at, url, "", 10)
        thread.join()
    assert said.startswith(f"The mirror {url} does not hand out its lock.json (")


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b"null", b'{"schema": 1}', lock(schema="2"), lock(files=[1]), b"\xff"]
)
def test_what_is_no_lock(content: bytes) -> None:
    said = refusal(mirror.lock_of, content, WHERE)
    assert said.startswith(f"What {WHERE}/lock.json answers is no lock of a mirror (")


def test_a_lock_of_a_later_version_is_no_wrong_mirror() -> None:
    assert refusal(mirror.lock_of, lock(schema=2), WHERE) == (
        f"lock.json of the mirror {WHERE} has schema 2, and this version of gaudi3.scale reads 1: install the version "
        "that filled it, or a later one."
    )


def test_a_mirror_of_another_release_or_without_a_part_is_refused_by_name() -> None:
    sealed = mirror.lock_of(lock(), WHERE)
    mirror.refuse_unfit(sealed, WHERE, RELEASE, {"x_url": "a", "y_url": "key"})
    assert refusal(mirror.refuse_unfit, sealed, WHERE, "1.24.0-1007", {}) == (
        f"The mirror {WHERE} is of release 1.23.0-695, and synapseai_release is 1.24.0-1007: set synapseai_release to "
        "the mirror's release, or gaudi_mirror to another mirror."
    )
    assert refusal(mirror.refuse_unfit, sealed, WHERE, RELEASE, {"x_url": "a", "y_url": "b", "z_url": "ke"}) == (
        f"The mirror {WHERE} does not have b (y_url), ke (z_url): add it with gaudi3-deploy mirror fill, or set the "
        "variable to another address."
    )


def test_the_digest_of_a_tarball() -> None:
    files = [
        {"path": f"{mirror.TORCH}/1/t.tgz", "sha256": "b" * 64},
        {"path": f"{mirror.TORCH}/odd.tgz", "sha256": "b"},
    ]
    sealed = mirror.lock_of(lock(files=files), WHERE)
    assert mirror.tarball_digest(sealed, WHERE, "1/t.tgz") == "b" * 64
    for path in ("2/t.tgz", "odd.tgz"):
        said = refusal(mirror.tarball_digest, sealed, WHERE, path)
        assert said.startswith(f"lock.json of the mirror {WHERE} does not name artifactory/gaudi-pt-modules/{path}:")


def test_a_mirror_with_a_poisoned_wheel_is_refused_by_name() -> None:
    names = ("Lightning-2.6.3-py3", "lightning-2.6.6-py3", "pytorch_lightning-2.6.2-py3", "odd")
    files = [{"path": f"pypi/wheels/{name}-none-any.whl", "sha256": "b" * 64} for name in names]
    sealed = mirror.lock_of(lock(files=[*files, {"path": "a/lightning-2.6.3.whl", "sha256": "b"}]), WHERE)
    assert [path for path, _said in mirror.poisoned(sealed.files)] == [files[0]["path"], files[2]["path"]]
    sources = [f"pypi/wheels/{name}.tar.gz" for name in ("lightning-2.6.3", "pytorch-lightning-2.6.2", "rich-2.6.3")]
    assert [path for path, _said in mirror.poisoned(sources)] == sources[:2]
    assert refusal(mirror.refuse_unfit, sealed, WHERE, RELEASE, {}) == (
        f"The mirror {WHERE} has pypi/wheels/Lightning-2.6.3-py3-none-any.whl, which is lightning 2.6.3, which steals "
        "credentials as soon as it is imported (GHSA-w37p-236h-pfx3, 2026-04-30): do not install from it, and fill "
        "another one."
    )


@pytest.mark.parametrize(
    ("file", "python", "fits"),
    [
        ("a-1-py3-none-any.whl", "3.11", True),
        ("a-1-py2.py3-none-any.whl", "3.11", True),
        ("a-1-cp311-cp311-manylinux_2_28_x86_64.whl", "3.11", True),
        ("a-1-cp312-cp312-manylinux_2_28_x86_64.whl", "3.11", False),
        ("a-1-cp39-abi3-manylinux_2_28_x86_64.whl", "3.11", True),
        ("a-1-cp312-abi3-manylinux_2_28_x86_64.whl", "3.11", False),
        ("a-1-cp311-cp311t-manylinux_2_28_x86_64.whl", "3.11", False),
        ("a-1-cp311-none-any.whl", "3.11", True),
        ("a-1-py310-none-any.whl", "3.11", True),
        ("a-1-py313-none-any.whl", "3.11", False),
        ("a-1.tar.gz", "3.11", True),
    ],
)
def test_a_wheel_counts_where_its_digest_is_a_pins_and_the_python_takes_it(file: str, python: str, fits: bool) -> None:
    files = {f"pypi/wheels/{file}": "d" * 64, "ubuntu/b": "e" * 64}
    pins = {"a": ["c" * 64, "d" * 64], "b": ["e" * 64]}
    assert mirror.lacking_wheels(files, pins, python) == ([] if fits else ["a"]) + ["b"]
