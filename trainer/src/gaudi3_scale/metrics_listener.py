"""The listener of a job's metrics, with bounds: its callers may be anybody, and its threads are those of a rank.

The number of callers at a time and the time of each call, TLS included, are bounded, and nobody can send more
than a request of Prometheus's needs. The others are let go at once.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

CALLERS = 16
"""Callers that are answered at a time, each by a thread."""
SECONDS = 10.0
"""From the call to the end of the answer."""
REQUEST = 16 * 1024
"""Bytes of a request, with all its headers."""
PLAIN = b"This port speaks TLS: use an address that begins with https://.\n"
"""What who asks over plain HTTP gets, instead of a connection that ends without a word."""
_LINGER = 1.0
"""Seconds for which the rest of such a request is read, since closing before would take the answer from its reader."""


class _Bounded(io.BufferedIOBase):
    """What a caller sends, up to a limit; after that it has ended."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, REQUEST

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> bytes:
        line: bytes = self._stream.readline(self._most(size))
        self._left -= len(line)
        return line

    def read(self, size: int | None = -1) -> bytes:
        data: bytes = self._stream.read(self._most(size))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()

    def _most(self, size: int | None) -> int:
        return self._left if size is None or size < 0 else min(size, self._left)


class _Handler(WSGIRequestHandler):
    def setup(self) -> None:
        super().setup()
        self.rfile = _Bounded(self.rfile)

    def log_message(self, *_: Any) -> None:
        """Scrapes are no news."""


class BoundedServer(ThreadingMixIn, WSGIServer):
    """Answers GET requests with a WSGI application, in threads that end with the process."""

    daemon_threads = True
    request_queue_size = CALLERS

    def __init__(
        self,
        address: str,
        port: int,
        application: Callable[..., Any],
        tls: ssl.SSLContext | None,
        callers: int = CALLERS,
    ) -> None:
        """Listen; `callers` are answered at a time. Raises OSError where that is not possible."""
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, self._tls = found[0][0], tls
        self._free = threading.BoundedSemaphore(callers)
        super().__init__(found[0][4][:2], _Handler)  # type: ignore[arg-type]
        self.set_app(application)

    def server_bind(self) -> None:
        """Bind, without asking a name server who this host is."""
        socket_of_server: socket.socket = self.socket
        if self.allow_reuse_address:
            socket_of_server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        socket_of_server.bind(self.server_address)
        self.server_address = socket_of_server.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was to be had
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer within the time there is."""
        own = request.dup()  # TLS takes the caller's socket over
        over = threading.Timer(SECONDS, _end, (own,))
        over.daemon = True
        over.start()
        try:
            with suppress(OSError):  # the caller has gone, or spoke no TLS
                if self._tls is not None:
                    if request.recv(1, socket.MSG_PEEK).isupper():  # a method of HTTP; TLS begins with a byte 0x16
                        _refuse_plain(request)
                        return
                    # Not when it is accepted: there one caller who says nothing would hold up all others.
                    request = self._tls.wrap_socket(request, server_side=True)
                super().process_request_thread(request, client_address)
        finally:
            over.cancel()
            own.close()
            with suppress(OSError):
                request.close()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who goes away is no news."""

    def start(self) -> None:
        """Answer from now on, in the background."""
        threading.Thread(target=self.serve_forever, name="gaudi3-metrics", daemon=True).start()


def _refuse_plain(request: socket.socket) -> None:
    head = f"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(PLAIN)}\r\n"
    request.sendall(f"{head}Connection: close\r\n\r\n".encode() + PLAIN)
    request.shutdown(socket.SHUT_WR)
    request.settimeout(_LINGER)
    left = REQUEST
    while left > 0 and (data := request.recv(left)):
        left -= len(data)


def _end(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
