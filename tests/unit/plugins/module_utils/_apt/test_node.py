"""The parts of an apt node that touch it: other sources of the same repository, and the ages of its lists."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import node as apt_node
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.node import Node, open_repository, redirection
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.repository import Repository, Source, follow
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

SOURCE = Source("http://vault/debian", "jammy", "http://vault/key")


def node(commands: list[list[str]], on_run: Any = None) -> Node:
    def run(command: list[str]) -> tuple[int, str, str]:
        commands.append(command)
        if on_run:
            on_run()
        return 0, "", ""

    module: Any = SimpleNamespace(run_command=run)
    return Node(module, 5)


class Redirecting(BaseHTTPRequestHandler):
    """Sends whoever asks for a package to where the test says."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(302 if self.path.endswith(".deb") and self.target else 200)
        if self.path.endswith(".deb") and self.target:
            self.send_header("Location", self.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A host of a repository on the loopback address."""
    for variable in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("target", ["", "http://127.0.0.1:{port}/elsewhere"])
def test_a_package_is_followed_to_its_host(index: str, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(Redirecting, "target", target.format(port=index.rpartition(":")[2]))
    follow(f"{index}/debian/pool/main/a.deb", lambda url: redirection(url, 5))


def test_a_host_behind_a_redirect_that_cannot_be_reached_is_named(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setattr(Redirecting, "target", f"http://localhost:{port}/store/a.deb?sign=1")
    with pytest.raises(Refusal) as caught:
        follow(f"{index}/debian/pool/main/a.deb", lambda url: redirection(url, 5))
    assert str(caught.value) == (
        f"{index}/debian/pool/main/a.deb is redirected to the host localhost:{port}, which does not give it "
        f"(Connection refused); let the node's proxy and firewall admit localhost:{port} besides {index[7:]}."
    )


def test_redirects_without_an_end_are_refused(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redirecting, "target", f"{index}/debian/pool/main/a.deb")
    with pytest.raises(Refusal, match="redirected more than 5 times"):
        follow(f"{index}/debian/pool/main/a.deb", lambda url: redirection(url, 5))


def test_the_package_of_the_release_is_asked_for_when_the_repository_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = Repository(b"", "F", {"a": ["1.22.0-740", "1.23.0-695"]}, {("a", "1.23.0-695"): "pool/main/a.deb"})
    monkeypatch.setattr(apt_node, "check", lambda *_arguments: found)
    monkeypatch.setattr(apt_node, "redirection", lambda url, _timeout: asked.append(url) or "")
    assert open_repository(node([]), SOURCE, None, ["a"], "1.23.0-695") is found
    assert asked == ["http://vault/debian/pool/main/a.deb"]


def test_a_refresh_of_the_vendors_lists_does_not_make_the_distributions_look_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, stamp, missing = tmp_path / "lists", tmp_path / "stamp", tmp_path / "missing"
    lists.mkdir()
    stamp.touch()
    old = 1_600_000_000_123_456_789
    for path in (lists, stamp):
        os.utime(path, ns=(old, old))
    monkeypatch.setattr(apt_node, "_LIST_AGES", (str(lists), str(stamp), str(missing)))

    def refresh() -> None:
        (lists / "vendor_InRelease").touch()
        os.utime(stamp)

    commands: list[list[str]] = []
    node(commands, refresh).refresh_vendor_lists("/usr/bin/apt-get")
    assert [command[:2] for command in commands] == [["/usr/bin/apt-get", "update"]]
    assert [path.stat().st_mtime_ns for path in (lists, stamp)] == [old, old]
    assert not missing.exists()
