"""The module that silences nodes, on something that answers as Alertmanager does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_silence

from .conftest import RunModule


class Alertmanager(BaseHTTPRequestHandler):
    """Keeps silences, and wants the password."""

    silences: dict[str, dict[str, Any]]

    def answer(self, content: Any, status: int = 200) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.headers["Authorization"] != "Basic YWxlcnRtYW5hZ2VyOnNlY3JldA==":
            self.answer(None, 401)
        else:
            self.answer([{"id": key} | each for key, each in self.silences.items()])

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = f"silence-{len(self.silences)}"
        self.silences[name] = given | {"status": {"state": "active"}}
        self.answer({"silenceID": name})

    def do_DELETE(self) -> None:
        self.silences[self.path.rpartition("/")[2]]["status"] = {"state": "expired"}
        self.answer(None)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Alertmanager.silences = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Alertmanager) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


def options(server: ThreadingHTTPServer, **more: Any) -> dict[str, Any]:
    url = f"http://127.0.0.1:{server.server_port}"
    given = {"url": url, "password": "secret", "nodes": ["gaudi-5"]}
    return given | {"length": "2h", "reason": "new cable"} | more


def test_a_node_is_silenced_once_and_heard_again(server: ThreadingHTTPServer, run_module: RunModule) -> None:
    predicted = run_module(gaudi_silence, check=True, diff=True, **options(server))
    assert (predicted["changed"], predicted["silenced"], Alertmanager.silences) == (True, ["gaudi-5"], {})
    assert predicted["diff"]["after"].startswith("gaudi-5 is silent until 2")
    first = run_module(gaudi_silence, **options(server))
    assert (first["changed"], first["silenced"], first["ended"]) == (True, ["gaudi-5"], [])
    (silence,) = Alertmanager.silences.values()
    assert silence["comment"] == "new cable"
    assert run_module(gaudi_silence, **options(server))["changed"] is False
    longer = run_module(gaudi_silence, **options(server, length="3h"))
    assert (longer["silenced"], longer["ended"]) == (["gaudi-5"], ["silence-0"])
    ended = run_module(gaudi_silence, **options(server, state="absent"))
    assert (ended["changed"], ended["ended"]) == (True, ["silence-1"])
    assert run_module(gaudi_silence, **options(server, state="absent"))["changed"] is False


@pytest.mark.parametrize("more", [{"length": ""}, {"length": "2"}, {"length": "soon"}, {"reason": " "}])
def test_a_silence_needs_a_length_and_a_reason(
    more: dict[str, str], server: ThreadingHTTPServer, run_module: RunModule
) -> None:
    result = run_module(gaudi_silence, **options(server, **more))
    assert result["failed"] and result["msg"].endswith("give a length such as 2h and a reason.")


def test_a_wrong_password_is_a_sentence_without_it(server: ThreadingHTTPServer, run_module: RunModule) -> None:
    result = run_module(gaudi_silence, **options(server, password="guessed"))
    assert "does not do what it is asked (HTTP Error 401" in result["msg"]
    assert "guessed" not in json.dumps(result)
