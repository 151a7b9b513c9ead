"""Management controllers for the tests: the simulator's stand-in as it is, and one that answers as it is told."""

from __future__ import annotations

import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from gaudi3_simulator.node import bmc, faults, node, store

USER, PASSWORD = "monitor", "hunter2-quite-secret"
#: Status and body, or what answers instead.
Answer = tuple[int, bytes] | Callable[[BaseHTTPRequestHandler], None]


def tree(folder: Path, *broken: dict[str, Any]) -> dict[str, Any]:
    """What the stand-in of a node with eight cards and these faults shows."""
    with mock.patch.dict(os.environ, {"GAUDI3_SIMULATOR_ROOT": str(folder), "GAUDI3_SIMULATOR_NOW": "1700000000"}):
        state = store.new_state("gaudi-1", 8)
        state["faults"] = [
            {**faults.make(each.pop("kind"), each.pop("card", None), None, 8), **each} for each in broken
        ]
        runtime = store.new_runtime()
        runtime["modules"] = {name: {"version": "1.23.0-695"} for name in (node.DRIVER, node.NIC)}
        runtime["devices_up"] = True
        return bmc.resources(node.Node(state, runtime))


def ok(content: Any) -> Answer:
    """An answer in order."""
    return 200, json.dumps(content).encode()


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]


class Scripted:
    """A server that answers each path as it is told, and keeps what came."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {"/redfish/v1/": ok({"RedfishVersion": "1.15.1"})}
        self.asked: list[Asked] = []
        self.connections = 0
        self.address = ""

    @contextmanager
    def served(self, certificate: Path, key: Path) -> Iterator[Scripted]:
        """Serve over TLS on a free port."""
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                script.connections += 1

            def _any(self) -> None:
                script.asked.append(Asked(self.command, self.path, dict(self.headers)))
                found = script.answers.get(self.path, (404, b"{}"))
                if callable(found):
                    found(self)
                    return
                status, body = found
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _any

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            server.handle_error = lambda *_: None  # type: ignore[method-assign]
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            thread.start()
            self.address = f"127.0.0.1:{server.server_port}"
            yield self
            server.shutdown()
