# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Collect the journals that nodes send by systemd-journal-upload, over TLS on which both sides show a certificate.

systemd's own collector would do, but Debian 12 has it without GnuTLS, and then it takes journals from everybody. So
this program listens in its place: it knows a node by its certificate, and has systemd's program write what came.
"""

from __future__ import annotations

import argparse
import os
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import NoReturn

from engine._logs.questions import DIRECTORY
from engine._logs.receiving import Writers, body, name_of
from engine._printable import printable
from engine._refusal import Refusal

WRITER = "/lib/systemd/systemd-journal-remote"
TYPE = "application/vnd.fdo.journal"
#: Batches that are written at once; connections in all and of one address; seconds for a handshake and between bytes.
AT_ONCE = 8
CALLERS, OF_AN_ADDRESS = 4096, 16
HANDSHAKE, IDLE = 10.0, 600.0


class Server(socketserver.ThreadingTCPServer):
    """A server of one address, with a thread for each connection."""

    allow_reuse_address = daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, address: str, port: int, tls: ssl.SSLContext, writers: Writers) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.writers, self._tls = writers, tls
        self._callers: Counter[str] = Counter()
        self._guard = threading.Lock()
        super().__init__((address, port), Handler)

    def get_request(self) -> tuple[socket.socket, object]:
        """A connection, whose handshake is left to its own thread: one that hangs holds up no other."""
        try:
            connection, peer = super().get_request()
        except OSError:
            time.sleep(0.1)  # The next caller is there already, and would be asked for without end.
            raise
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), peer

    def verify_request(self, request: object, client_address: object) -> bool:
        """Whether there is room for one more."""
        with self._guard:
            address = str(client_address[0])  # type: ignore[index]
            return sum(self._callers.values()) < CALLERS and self._callers[address] < OF_AN_ADDRESS

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Serve a caller, and count it meanwhile."""
        address = str(client_address[0])  # type: ignore[index]
        with self._guard:
            self._callers[address] += 1
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            with self._guard:
                self._callers[address] -= 1
                if not self._callers[address]:
                    del self._callers[address]

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that broke off, or has no certificate, is none of this program's errors."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """One connection of a node."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE
    server: Server

    def setup(self) -> None:
        """Shake hands: who has no certificate of the authority gets no further."""
        self.request.settimeout(HANDSHAKE)
        self.request.do_handshake()
        super().setup()

    def do_POST(self) -> None:
        """Take a batch, and acknowledge it when it is written."""
        name = name_of(self.request.getpeercert())
        if name is None:
            return self._refuse(403, "the certificate has no plain common name")
        if self.path != "/upload":
            return self._refuse(404, "nodes send to /upload")
        if (self.headers.get("Content-Type") or "").partition(";")[0].strip() != TYPE:
            return self._refuse(415, f"nodes send {TYPE}")
        try:
            written = self.server.writers.write(name, body(self.rfile, self.headers))
        except Refusal as error:
            return self._refuse(400, str(error))
        if not written:
            tell(f"what {name} has sent cannot be written: see the lines before, and the disk")
            return self._refuse(500, "it was not written")
        self._answer(202, "OK.\n")
        return None

    def _refuse(self, code: int, reason: str) -> None:
        """Answer, and end the connection: what follows may belong to the request."""
        self.close_connection = True
        self._answer(code, f"{reason}\n")

    def _answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def tell(text: str) -> None:
    """A line for the journal of this host."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


def client_checking(folder: str) -> ssl.SSLContext:
    """TLS with the certificate and the key in a folder, for callers with a certificate of the authority there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
    context.load_verify_locations(f"{folder}/authority")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def main() -> NoReturn:
    """Serve for ever."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="where to listen")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--credentials", default=os.environ.get("CREDENTIALS_DIRECTORY", "."), help="folder of them")
    asked = parser.parse_args()
    writers = Writers([WRITER, "--split-mode=none"], DIRECTORY, AT_ONCE)
    Server(asked.address, asked.port, client_checking(asked.credentials), writers).serve_forever()
    sys.exit(1)


if __name__ == "__main__":
    main()
