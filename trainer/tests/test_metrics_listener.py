"""The listener of a job's metrics: callers who say nothing cost it little, and keep nobody from an answer."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import SOURCES, wait_for

from gaudi3_scale import metrics_listener


def page(environ: Any, start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"metrics"]


@pytest.fixture
def server() -> Iterator[metrics_listener.BoundedServer]:
    made = metrics_listener.BoundedServer("127.0.0.1", 0, page, None)
    made.start()
    yield made
    made.shutdown()
    made.server_close()


def call(server: metrics_listener.BoundedServer, said: bytes = b"") -> socket.socket:
    caller = socket.create_connection(("127.0.0.1", server.server_port), 30)
    caller.sendall(said)
    return caller


def answer(server: metrics_listener.BoundedServer, said: bytes = b"GET /metrics HTTP/1.0\r\n\r\n") -> bytes:
    with call(server, said) as caller:
        received = b""
        try:
            while data := caller.recv(65536):
                received += data
        except ConnectionResetError:
            pass
        return received


def threads() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_idle_callers_are_bounded(server: metrics_listener.BoundedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_listener, "SECONDS", 600.0)
    assert answer(server).endswith(b"metrics")
    idle = [call(server) for _ in range(3 * metrics_listener.CALLERS)]
    wait_for(lambda: threads() == metrics_listener.CALLERS, "callers")
    assert answer(server) == b"", "there is no room, and nobody is kept waiting"
    assert threads() <= metrics_listener.CALLERS
    for caller in idle:
        caller.close()
    wait_for(lambda: threads() == 0, "the end of the callers")
    assert answer(server).endswith(b"metrics")


def test_a_caller_who_says_nothing_is_let_go(
    server: metrics_listener.BoundedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_listener, "SECONDS", 0.2)
    assert answer(server, b"") == b""


def test_a_caller_who_speaks_slowly_has_no_longer(
    server: metrics_listener.BoundedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_listener, "SECONDS", 0.5)
    with call(server, b"GET / HTTP/1.0\r\n") as caller, pytest.raises(ConnectionError):
        for _ in range(600):
            caller.sendall(b"a")
            time.sleep(0.05)


@pytest.mark.parametrize("said", [b"GET /" + b"x" * 70_000, b"GET / HTTP/1.0\r\n" + b"a: b\r\n" * 60_000])
def test_a_request_is_bounded(server: metrics_listener.BoundedServer, said: bytes) -> None:
    with call(server) as caller:
        try:
            caller.sendall(said)
            while caller.recv(65536):
                pass
        except OSError:
            pass
    wait_for(lambda: threads() == 0, "the end of the caller", seconds=metrics_listener.SECONDS / 2)


def test_every_listener_of_the_package_is_bounded() -> None:
    """A new one is `BoundedServer`, or is listed here with a reason."""
    listens = re.compile(r"socketserver|http\.server|wsgiref|start_http_server|make_server|TCPServer\b|\.listen\(")
    found = {path.name for source in SOURCES for path in source.rglob("*.py") if listens.search(path.read_text())}
    assert found == {"metrics_listener.py"}
