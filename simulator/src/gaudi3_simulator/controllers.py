"""Stand-in management controllers (BMCs), one for each Gaudi node of a cluster: Redfish over TLS, for readers alone.

A controller is another machine than its node, so these run beside the nodes, on this machine. Each says in its root,
and in the header ``Server``, that it is none. It takes GET with a user and a password (HTTP Basic) and refuses
everything else.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import shutil
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from . import RequestError, SimulatorError
from .cluster import exec_in
from .home import Cluster, load_cluster, write_atomically
from .node import bmc, board

#: What a controller shows: resources by their paths.
Shown = dict[str, Any]
USER = "monitor"
ADDRESS = "127.0.0.1"
#: Seconds for which a controller shows what it saw.
FRESH = 1.0
_NODE = "/usr/local/sbin/gaudi3-simulator-node"


class Handler(BaseHTTPRequestHandler):
    """Redfish, read only."""

    protocol_version = "HTTP/1.1"
    server_version = "gaudi3-simulator-stand-in"
    sys_version = ""
    timeout = 30
    disable_nagle_algorithm = True
    authorization = ""
    look: Callable[[], Shown]

    def do_GET(self) -> None:
        """A resource. The root is open to all, as Redfish has it."""
        path = self.path.rstrip("/")
        allowed = hmac.compare_digest(self.headers.get("Authorization", ""), self.authorization)
        if path != bmc.ROOT and not allowed:
            self._answer(401, "The user or the password is wrong")
            return
        found = type(self).look().get(path)
        self._answer(200, found) if found is not None else self._answer(404, f"There is no {path}")

    def _refuse(self) -> None:
        self.close_connection = True
        self._answer(405, "This stand-in is for readers alone")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _refuse

    def _answer(self, status: int, content: Any) -> None:
        known = {"error": {"code": "Base.1.15.GeneralError", "message": content}} if status != 200 else content
        body = json.dumps(known).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("OData-Version", "4.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Eye:
    """Looks at a node at most once a second, and remembers what it saw while the node is off."""

    def __init__(self, ask: Callable[[], Shown | None]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._last: Shown = {}
        self._shown: Shown = {}
        self._until = 0.0

    def __call__(self) -> Shown:
        """What the controller shows now."""
        with self._lock:
            if time.monotonic() >= self._until:
                seen = self._ask()
                self._last = seen or self._last
                self._shown = seen or bmc.switched_off(self._last)
                self._until = time.monotonic() + FRESH
            return self._shown


def seen_in(cluster: str, node: str) -> Shown | None:
    """What the node's controller shows; None while the node is off."""
    result = exec_in(cluster, node, _NODE, "bmc")
    if result.returncode:
        return None
    found: Shown = json.loads(result.stdout)
    return found


def certify(folder: Path) -> tuple[Path, Path]:
    """A new certificate that names this machine's loopback address, and its key."""
    if not shutil.which("openssl"):
        raise SimulatorError("openssl is missing: install the package openssl.")
    certificate, key = folder / "ca.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "30", "-subj", "/CN=gaudi3-simulator stand-in", "-addext", f"subjectAltName=IP:{ADDRESS}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SimulatorError(f"'openssl req' failed: {(result.stderr.strip().splitlines() or ['no message'])[-1]}")
    return certificate, key


@contextmanager
def served(look: Callable[[], Shown], password: str, certificate: Path, key: Path) -> Iterator[str]:
    """One controller; its address."""
    authorization = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
    handler = type("Served", (Handler,), {"look": staticmethod(look), "authorization": authorization})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer((ADDRESS, 0), handler) as server:
        # The handshake belongs to the thread of a connection, so that a caller without one holds up nobody.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a caller went away
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield f"{ADDRESS}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def of_cluster(cluster: Cluster) -> Iterator[dict[str, str]]:
    """Serve those of all Gaudi nodes, with a password of their own, and tell readers where they are."""
    folder = cluster.bmc_folder
    folder.mkdir(mode=0o700, exist_ok=True)
    certificate, key = certify(folder)
    password = secrets.token_urlsafe(18)
    variables = {"gaudi_bmc_user": USER, "gaudi_bmc_password": password, "gaudi_bmc_ca_file": str(certificate)}
    write_atomically(folder / "variables.json", json.dumps(variables, indent=1) + "\n", mode=0o600)
    with ExitStack() as stack:
        known = {}
        for node in cluster.nodes:
            eye = Eye(lambda name=node.name: seen_in(cluster.name, name))  # type: ignore[misc]
            known[node.name] = stack.enter_context(served(eye, password, certificate, key))
        write_atomically(cluster.bmc_addresses, json.dumps(known, indent=1) + "\n")
        stack.callback(cluster.bmc_addresses.unlink, missing_ok=True)
        yield known


def run(name: str, log: Callable[[str], None] = print) -> None:
    """Serve until somebody ends it."""
    cluster = load_cluster(name)
    if cluster is None:
        raise RequestError(f"There is no cluster called {name}: bring it up with 'gaudi3-simulator up --name {name}'.")
    kind = board.find_board(cluster.board or board.DEFAULT_BOARD)
    if kind.generation != "gaudi3":
        raise RequestError(
            f"Cluster {name} has {kind.product}, and only the model of a Gaudi 3's controller is simulated."
        )
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with of_cluster(cluster) as known:
        for node, address in known.items():
            log(f"{node}: https://{address}{bmc.ROOT}, user {USER}")
        log(f"password and certificate: {cluster.bmc_folder}")
        command = f"GAUDI3_SIMULATOR_CLUSTER={name} ansible-playbook playbooks/bmc.yml"
        log(f"next: {command} -e @{cluster.bmc_folder}/variables.json")
        ended.wait()
