"""Parts that a monitoring host is asked: a page over TLS, a package, and texts of files."""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Authority, issue
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import service_page
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_node_look

NOW = datetime.datetime.now(datetime.UTC)
CA, CA_KEY = issue(None, [], 10, NOW)
TARGETS = [("node", "gaudi-1", "up"), ("hpu", "gaudi-1", "down"), ("training", "gaudi-1", "down")]


class Server:
    """A service that wants a password, and says what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[str | None] = []
        (folder / "ca.crt").write_bytes(CA)
        for name, content in zip(("crt", "key"), issue(Authority(CA, CA_KEY), ["127.0.0.1"], 5, NOW), strict=True):
            (folder / f"own.{name}").write_bytes(content)
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.headers["Authorization"])
                code, said = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                self.send_response(code)
                self.end_headers()
                self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

            def log_message(self, *_arguments: Any) -> None:
                """Nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "own.crt", folder / "own.key")
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.http.shutdown()
    made.http.server_close()


def active(targets: list[tuple[str, str, str]]) -> dict[str, Any]:
    found = [{"labels": {"job": job, "instance": host}, "health": health} for job, host, health in targets]
    return {"data": {"activeTargets": found}}


@pytest.fixture
def ask(run_module: Any, tmp_path: Path) -> Any:
    def asked(module: str, **arguments: Any) -> dict[str, Any]:
        part = {"name": "it", "module": module, "arguments": arguments, "tolerated": True}
        return dict(run_module(gaudi_node_look, parts=[part])["found"]["it"])

    return asked


def test_the_password_is_sent_to_who_the_authority_has_signed(server: Server, ask: Any, tmp_path: Path) -> None:
    server.answers = [(200, {})]
    given = {"url": f"{server.url}/-/ready", "username": "me", "password": "gräfin", "authority": f"{tmp_path}/ca.crt"}
    assert ask("service_page", **given)["status"] == 200
    assert base64.b64decode(str(server.asked[0]).split()[1]).decode() == "me:gräfin"
    other, _key = issue(None, [], 10, NOW)
    (tmp_path / "ca.crt").write_bytes(other)
    refused = ask("service_page", **given)
    assert refused["status"] == -1 and "certificate verify failed" in refused["msg"] and len(server.asked) == 1
    assert ask("service_page", **{**given, "authority": "/none"})["failed"]


def test_targets_that_are_unknown_or_down_are_named(server: Server, ask: Any, tmp_path: Path) -> None:
    given = {
        "url": f"{server.url}/api/v1/targets", "authority": f"{tmp_path}/ca.crt", "quiet": ["training"],
        "targets": ["node/gaudi-1", "hpu/gaudi-1"],
    }  # fmt: skip
    server.answers = [(200, active(TARGETS))]
    found = ask("service_page", **given)
    assert (found["missing"], found["silent"]) == ([], ["hpu/gaudi-1"])
    lacking = ask("service_page", **{**given, "targets": ["node/mon"]})
    assert lacking["failed"] and lacking["msg"].endswith("/api/v1/targets does not know node/mon.")
    for odd in ([], {"data": {"activeTargets": [{"labels": 5}]}}, b"[1"):
        server.answers = [(200, odd)]
        assert ask("service_page", **given)["status"] == -1


def test_it_is_asked_again_until_it_answers(
    server: Server, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(service_page.time, "sleep", waits.append)
    server.answers = [(503, {}), (503, {}), (200, {})]
    given = {"url": server.url, "authority": f"{tmp_path}/ca.crt"}
    assert ask("service_page", **given, tries=3)["status"] == 200 and waits == [2, 2]
    server.answers = [(503, {})]
    assert ask("service_page", **given, tries=2)["msg"] == f"{server.url} does not answer: status 503."


@pytest.mark.parametrize(
    ("asked", "said", "installed"),
    [
        ("grafana", "installed 12.0.1", True),
        ("grafana=12.*", "installed 12.0.1", True),
        ("grafana=11.*", "installed 12.0.1", False),
        ("grafana", "config-files 12.0.1", False),
        ("grafana", "", False),
        ("grafana>=12", "installed 12.0.1", None),
        ("./grafana.deb", "installed 12.0.1", None),
    ],
)
def test_a_package_is_there_in_its_version(
    ask: Any, tmp_path: Path, asked: str, said: str, installed: bool | None
) -> None:
    dpkg = tmp_path / "dpkg-query"
    dpkg.write_text(f"#!/bin/sh\necho '{said}'\n")
    dpkg.chmod(0o755)
    answer = ask("package", package=asked, dpkg_query_executable=str(dpkg))
    assert answer["installed"] is installed
    assert answer["version"] == ("12.0.1" if "=" not in asked and installed else answer["version"])
    assert answer["candidate"] == ""


@pytest.mark.parametrize(("said", "candidate"), [("12.1.0", "12.1.0"), ("(none)", "")])
def test_what_apt_would_install_is_asked_where_it_is_wanted(
    ask: Any, tmp_path: Path, said: str, candidate: str
) -> None:
    for name, text in (("dpkg-query", ""), ("apt-cache", f"grafana:\n  Installed: (none)\n  Candidate: {said}\n")):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{text}'\n")
        (tmp_path / name).chmod(0o755)
    tools = {f"{name.replace('-', '_')}_executable": str(tmp_path / name) for name in ("dpkg-query", "apt-cache")}
    found = ask("package", package="grafana", candidate=True, **tools)
    assert (found["installed"], found["version"], found["candidate"]) == (False, "", candidate)


def test_texts_of_files_are_those_that_are_there(ask: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text\n")
    paths = [f"{tmp_path}/a", f"{tmp_path}/b", str(tmp_path)]
    assert ask("contents", paths=paths) == {"changed": False, "texts": {f"{tmp_path}/a": "text\n"}}
