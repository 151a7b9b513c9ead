"""Small metadata services on loopback that are as strict as the clouds' own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, str]
S = TypeVar("S", bound="Service")


class Service:
    """What the test changes and sees; subclasses answer."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.failures = 0
        """How many of the next requests are answered with 500."""
        self.delay = 0.0
        self.changed = threading.Condition()
        self.version = 1
        self.endpoint = ""

    def change(self, **values: Any) -> None:
        """Set what the service says from now on."""
        with self.changed:
            vars(self).update(values)
            self.version += 1
            self.changed.notify_all()

    def answer(self, method: str, path: str, query: dict[str, str], headers: Any) -> Answer:
        """Status and text."""
        raise NotImplementedError


class Aws(Service):
    """Version 2 of the instance metadata service: nothing without a token."""

    def __init__(self) -> None:
        super().__init__()
        self.action: dict[str, str] | None = None
        self.advice: dict[str, str] | None = None
        self.tokens: set[str] = set()

    def answer(self, method: str, path: str, query: dict[str, str], headers: Any) -> Answer:
        if path == "/latest/api/token":
            seconds = headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            if method != "PUT" or not seconds.isdigit() or not 1 <= int(seconds) <= 21600:
                return (405, "") if method != "PUT" else (400, "")
            self.tokens.add(token := f"token-{len(self.requests)}")
            return 200, token
        if headers.get("X-aws-ec2-metadata-token") not in self.tokens:
            return 401, "Unauthorized"
        said = {
            "/latest/meta-data/spot/instance-action": self.action,
            "/latest/meta-data/events/recommendations/rebalance": self.advice,
        }.get(path)
        return (404, "Not Found") if said is None else (200, json.dumps(said))


class Gcp(Service):
    """Wants its header, and holds a request back until the value changes."""

    def __init__(self) -> None:
        super().__init__()
        self.preempted = "FALSE"
        self.event = "NONE"

    def answer(self, method: str, path: str, query: dict[str, str], headers: Any) -> Answer:
        if headers.get("Metadata-Flavor") != "Google":
            return 403, "Missing required header"
        if path == "/computeMetadata/v1/instance/maintenance-event":
            return 200, self.event
        if path != "/computeMetadata/v1/instance/preempted":
            return 404, ""
        if query.get("wait_for_change") == "true":
            with self.changed:
                seen = query.get("last_etag", str(self.version))
                self.changed.wait_for(lambda: str(self.version) != seen, float(query.get("timeout_sec", "3600")))
        return 200, self.preempted


class Azure(Service):
    """Scheduled Events of all machines of a set."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def answer(self, method: str, path: str, query: dict[str, str], headers: Any) -> Answer:
        if headers.get("Metadata") != "true" or "X-Forwarded-For" in headers:
            return 400, '{"error": "Bad request"}'
        if path == "/metadata/instance/compute/name" and query.get("format") == "text" and "api-version" in query:
            return 200, "node-1"
        if path == "/metadata/scheduledevents" and query.get("api-version") == "2020-07-01":
            return 200, json.dumps({"DocumentIncarnation": self.version, "Events": self.events})
        return 404, ""


@contextmanager
def serving(service: S) -> Iterator[S]:
    """The service at its `endpoint`."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            url = urlsplit(self.path)
            service.requests.append(f"{self.command} {self.path}")
            time.sleep(service.delay)
            if service.failures:
                service.failures -= 1
                status, text = 500, "Internal Server Error"
            else:
                query = {key: values[0] for key, values in parse_qs(url.query).items()}
                status, text = service.answer(self.command, url.path, query, self.headers)
            try:
                self.send_response(status)
                self.send_header("ETag", str(service.version))
                self.end_headers()
                self.wfile.write(text.encode())
            except BrokenPipeError:
                return

        do_GET = do_PUT = _do

        def log_message(self, *_: Any) -> None:
            """Not on the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    service.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
