"""What nodes send: a name by the certificate, a body that is whole or refused, and a batch that is written or not."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._logs import receiving
from ansible_collections.gaudi3.scale.plugins.module_utils._logs.receiving import Writers
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def subject(*names: tuple[str, str]) -> dict[str, Any]:
    return {"subject": tuple((name,) for name in names)}


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (subject(("commonName", "gaudi-1")), "gaudi-1"),
        (subject(("organizationName", "site"), ("commonName", "10.0.0.1")), "10.0.0.1"),
        (subject(("commonName", "gaudi-1"), ("commonName", "gaudi-2")), None),
        (subject(("organizationName", "gaudi-1")), None),
        (subject(("commonName", "../../etc/passwd")), None),
        (subject(("commonName", ".hidden")), None),
        (subject(("commonName", "a" * 65)), None),
        (subject(("commonName", "gaudi\n1")), None),
        ({}, None),
        (None, None),
    ],
)
def test_a_node_is_known_by_the_one_plain_name_of_its_certificate(certificate: Any, name: str | None) -> None:
    assert receiving.name_of(certificate) == name


CHUNKED = {"Transfer-Encoding": "chunked"}


def read(sent: bytes, headers: dict[str, str]) -> bytes:
    return b"".join(receiving.body(io.BytesIO(sent), headers))


@pytest.mark.parametrize(
    ("sent", "headers", "content"),
    [
        (b"4\r\nMESS\r\nA;x=y\r\nAGE=a\n\n\n\n\n\r\n0\r\n\r\n", CHUNKED, b"MESSAGE=a\n\n\n\n\n"),
        (b"0\r\nTrailer: x\r\n\r\n", CHUNKED, b""),
        (b"abcdef", {"Content-Length": "4"}, b"abcd"),
    ],
)
def test_a_whole_body(sent: bytes, headers: dict[str, str], content: bytes) -> None:
    assert read(sent, headers) == content


@pytest.mark.parametrize(
    ("sent", "headers"),
    [
        (b"4\r\nMESS", CHUNKED),
        (b"4\r\nME", CHUNKED),
        (b"4\r\nMESSAGE\r\n0\r\n\r\n", CHUNKED),
        (b"-4\r\nMESS\r\n0\r\n\r\n", CHUNKED),
        (b"\r\n", CHUNKED),
        (b"fffffff\r\n", CHUNKED),
        (b"0" * 5000 + b"\r\n", CHUNKED),
        (b"0\r\n", CHUNKED),
        (b"abc", {"Content-Length": "4"}),
        (b"abc", {"Content-Length": "-1"}),
        (b"abc", {}),
    ],
)
def test_a_body_that_is_not_whole(sent: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(Refusal):
        read(sent, headers)


def writers(folder: Path, script: str, at_once: int = 2) -> Writers:
    """As a program, a shell's script that finds the option in ``$1``."""
    return Writers(["/bin/sh", "-c", script, "sh"], str(folder), at_once)


COPY = 'cat >> "${1#--output=}"'


def test_a_batch_is_written_to_the_journal_of_its_node(tmp_path: Path) -> None:
    assert writers(tmp_path, COPY).write("gaudi-1", [b"a\n", b"b\n"])
    assert (tmp_path / "gaudi-1.journal").read_bytes() == b"a\nb\n"


@pytest.mark.parametrize("script", ["cat > /dev/null; exit 1", "exit 0"])
def test_what_was_not_written_is_not_acknowledged(tmp_path: Path, script: str) -> None:
    assert not writers(tmp_path, script).write("gaudi-1", [b"a" * 10**6] * 3)


def test_a_batch_that_breaks_off_is_not_acknowledged(tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"a\n"
        raise Refusal("It ends early.")

    with pytest.raises(Refusal):
        writers(tmp_path, COPY).write("gaudi-1", blocks())
    assert writers(tmp_path, COPY).write("gaudi-1", [b"b\n"]), "and the next one is"


def test_of_one_node_one_batch_is_written_at_a_time(tmp_path: Path) -> None:
    script = 'exec 9> "${1#--output=}.lock"; flock -n 9 || exit 1; cat > /dev/null; sleep 0.2'
    own, found = writers(tmp_path, script, at_once=4), []
    threads = [
        threading.Thread(target=lambda name=name: found.append(own.write(name, [b"a"])))  # type: ignore[misc]
        for name in ("gaudi-1", "gaudi-1", "gaudi-2")
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 3
    assert 0.4 <= time.monotonic() - began < 5
