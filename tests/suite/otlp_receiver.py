"""A receiver of traces: OTLP over HTTP, read by OpenTelemetry's own definition of the messages."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PATH = "/v1/traces"


@dataclass(frozen=True)
class Received:
    """A span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    """Empty for a span that belongs to none."""
    start: int
    end: int
    attributes: dict[str, Any]
    links: tuple[str, ...]
    """Ids of other spans; with their trace before a slash, where it is another one."""
    error: str | None
    resource: dict[str, Any]

    @property
    def service(self) -> str:
        """Whose span it is."""
        return str(self.resource["service.name"])

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return (self.end - self.start) / 1e9


class Receiver:
    """Answers at `url`; what comes is in `spans`, and the headers of each request are in `headers`."""

    def __init__(
        self, status: int = 200, delay: float = 0.0, token: str = "", tls: Sequence[str] = (), authority: str = ""
    ) -> None:
        """Answer with this status, after some seconds, and only to who has the `token`.

        `tls` is a certificate and its key, `authority` that of the certificates that callers need.
        """
        self.spans: list[Received] = []
        self.headers: list[dict[str, str]] = []
        self.status, self.delay, self.token = status, delay, token
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                time.sleep(receiver.delay)
                status = receiver._take(self.path, body, self.headers)
                # A server that is not meant for this may well repeat what it got.
                answer = (
                    ExportTraceServiceResponse().SerializeToString() if status == 200 else str(self.headers).encode()
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Requests are no news."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            if authority:
                context.load_verify_locations(authority)
                context.verify_mode = ssl.CERT_REQUIRED
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def named(self, name: str) -> list[Received]:
        """The spans of this name, by the time they began."""
        return sorted((each for each in self.spans if each.name == name), key=lambda each: each.start)

    def one(self, name: str) -> Received:
        """The span of this name."""
        (found,) = self.named(name)
        return found

    @property
    def environment(self) -> dict[str, str]:
        """What a program gets that is to send its traces here."""
        return {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": self.url}

    def _take(self, path: str, body: bytes, headers: Any) -> int:
        if self.status != 200:
            return self.status
        if path != PATH or headers["Content-Type"] != "application/x-protobuf":
            return 404
        if self.token and headers["Authorization"] != self.token:
            return 401
        request = ExportTraceServiceRequest()
        request.ParseFromString(gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body)
        self.spans += received(request)
        return 200


def received(request: ExportTraceServiceRequest) -> Iterator[Received]:
    """The spans of a message."""
    for group in request.resource_spans:
        resource = _values(group.resource.attributes)
        for span in (span for scope in group.scope_spans for span in scope.spans):
            trace = span.trace_id.hex()
            links = [
                f"{'' if link.trace_id == span.trace_id else link.trace_id.hex() + '/'}{link.span_id.hex()}"
                for link in span.links
            ]
            yield Received(
                span.name,
                trace,
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                _values(span.attributes),
                tuple(links),
                span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else None,
                resource,
            )


def tree(spans: list[Received]) -> list[str]:
    """The spans as lines, each below the one that it belongs to, in the order in which they began."""
    known = {span.id for span in spans}
    lines: list[str] = []

    def below(parent: str | None, depth: int) -> None:
        mine = [span for span in spans if (span.parent if span.parent in known else None) == parent]
        for span in sorted(mine, key=lambda each: each.start):
            lines.append("  " * depth + span.name)
            below(span.id, depth + 1)

    below(None, 0)
    return lines


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def receiver(**options: Any) -> Iterator[Receiver]:
    """A receiver that is there for a while."""
    made = Receiver(**options)
    try:
        yield made
    finally:
        made.close()
