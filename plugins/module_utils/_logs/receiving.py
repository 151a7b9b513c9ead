# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Takes what nodes send: who that is by the certificate, the body of a request, and the program that writes journals.

A batch is acknowledged when systemd's own program has written it and ended well, which is when it is on the disk. Until
then the node keeps it, and sends it again.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Optional

from .._refusal import Refusal

#: Names by which nodes are shown, and files are called.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Bytes that are read at a time; of one chunk, and of the line before it.
BLOCK = 65536
OF_A_CHUNK = 64 * 1024 * 1024
OF_A_LINE = 1024
#: Seconds that the program has for the end of a batch.
PATIENCE = 120.0


def name_of(certificate: Optional[Mapping[str, Any]]) -> Optional[str]:
    """The one common name of a certificate, as ssl describes it; None where it is none that a node may have."""
    subject = (certificate or {}).get("subject") or ()
    names = [value for part in subject for key, value in part if key == "commonName"]
    return str(names[0]) if len(names) == 1 and NAME.fullmatch(str(names[0])) else None


def body(file: BinaryIO, headers: Mapping[str, str]) -> Iterator[bytes]:
    """The body of a request in blocks; ``Refusal`` where it is not whole."""
    if (headers.get("Transfer-Encoding") or "").strip().lower() == "chunked":
        yield from _chunks(file)
        return
    length = (headers.get("Content-Length") or "").strip()
    if not re.fullmatch("[0-9]{1,15}", length):
        raise Refusal("The body has no length.")
    yield from _exactly(file, int(length))


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while True:
        found = re.fullmatch(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?", _line(file))
        size = int(found[1], 16) if found else OF_A_CHUNK + 1
        if size > OF_A_CHUNK:
            raise Refusal("A chunk of the body has no length, or is too long.")
        if not size:
            break
        yield from _exactly(file, size)
        if _line(file):
            raise Refusal("A chunk of the body is longer than it says.")
    while _line(file):  # What may follow the last chunk is not used.
        pass


def _line(file: BinaryIO) -> bytes:
    line = file.readline(OF_A_LINE)
    if not line.endswith(b"\n"):
        raise Refusal("The body ends early, or has a line that is too long.")
    return line.rstrip(b"\r\n")


def _exactly(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size:
        block = file.read(min(size, BLOCK))
        if not block:
            raise Refusal("The body ends early.")
        size -= len(block)
        yield block


class Writers:
    """Starts the program that writes a batch into the journal of one node: a few at once, and of each node one."""

    def __init__(self, command: Sequence[str], folder: str, at_once: int) -> None:
        self._command, self._folder = list(command), folder
        self._room = threading.Semaphore(at_once)
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def write(self, name: str, blocks: Iterable[bytes]) -> bool:
        """Whether all blocks are in the journal of this node, on the disk. What is raised on the way is passed on."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        blocks = iter(blocks)
        first = next(blocks, b"")  # before anybody is kept waiting by a node that sends nothing
        with lock, self._room:
            process = subprocess.Popen(
                [*self._command, f"--output={self._folder}/{name}.journal", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            whole = False
            try:
                whole = _fed(process, first, blocks)
            finally:
                code = _ended(process)
            return whole and code == 0


def _fed(process: subprocess.Popen[bytes], first: bytes, blocks: Iterator[bytes]) -> bool:
    """Whether the program took all blocks."""
    if process.stdin is None:
        return False
    try:
        process.stdin.write(first)
        for block in blocks:
            process.stdin.write(block)
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return True


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of the program, after the last block."""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
