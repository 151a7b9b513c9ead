# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Prometheus exporter of a node's Gaudi cards, fed by hl-smi.

It serves Intel's metric names and labels (``habanalabs_*``) where hl-smi knows the value, ``gaudi_card_*``
where it knows more, and ``gaudi_hpu_exporter_*`` about itself. docs/reference/metrics.yml lists them.

One thread calls hl-smi, once at a time; a scrape prints what it read last, and never waits. What could not be
read is absent, never 0 and never an old value: a failed or overdue reading takes its series off the page and
sets ``gaudi_hpu_exporter_read_success`` to 0. ``/healthz`` says why in one sentence.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi import hl_smi
    from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi, Runner
else:
    from _hl_smi import hl_smi  # the collection's family of hl-smi, installed beside this file
    from _hl_smi.command import HlSmi, Runner

from gaudi_hpu_page import IDENTITY, READINGS, Card, Status, readings, render

MINIMUM_INTERVAL = 5.0
#: Bytes of one call of hl-smi: a hundred times what it prints of eight cards.
OUTPUT_LIMIT = 2**20


class Reader:
    """Reads all cards every ``interval`` seconds and, in between, the log and the ports, one call at a time."""

    def __init__(self, tool: HlSmi, timeout: float, interval: float, details_interval: float) -> None:
        self._tool = tool
        self._interval, self._details_interval = interval, details_interval
        self._max_age = {"cards": 2 * interval + timeout, "details": 3 * details_interval + timeout}
        self._lock = threading.Lock()
        self._status = {"cards": Status(), "details": Status()}
        self._rows: list[dict[str, str]] = []
        self._values: dict[str, dict[str, int | None]] = {}
        self._known_for: list[str] = []  # the driver and cards that the details were read for
        self._logs: dict[str, hl_smi.CardLog] = {}
        self._logs_read_at = float("-inf")
        self._odd: list[str] = []
        self._types: dict[str, list[hl_smi.Port]] = {}
        self._ports: dict[str, tuple[float, list[tuple[int, str, bool]]]] = {}
        self._queue: list[Callable[[], None]] = []  # what is left of the details
        self._failures: list[str] = []
        self._started = 0.0
        self._next_cards = self._next_details = float("-inf")

    def step(self) -> float:
        """Make the call of hl-smi that is due, and say how many seconds are left until the next."""
        now = time.monotonic()
        if now >= self._next_cards:
            self._next_cards = now + self._interval
            self._record("cards", self._attempt(self._read_cards), now)
        elif self._queue or now >= self._next_details:
            if not self._queue:
                self._next_details, self._started, self._failures = now + self._details_interval, now, []
                ports = [partial(self._read_ports, row["bus_id"]) for row in self._rows]
                self._queue = [self._read_log, *ports]
            error = self._attempt(self._queue.pop(0))
            self._failures += [error] if error else []
            if not self._queue:
                self._record("details", next(iter(self._failures), None), self._started)
        return 0.0 if self._queue else min(self._next_cards, self._next_details) - time.monotonic()

    def run(self) -> NoReturn:
        """Read for ever."""
        while True:
            time.sleep(max(0.0, self.step()))

    def snapshot(self) -> tuple[list[Card], dict[str, Status]]:
        """The cards and how the readings fare, without anything that is overdue."""
        with self._lock:
            now = time.monotonic()
            status = dict(self._status)
            for kind, state in status.items():
                age = now - state.read_at
                if state.error is None and age > self._max_age[kind]:
                    status[kind] = replace(state, error=f"the last reading is {age:.0f} seconds old")
            cards = []
            for row in [] if status["cards"].error else self._rows:
                read_at, ports = self._ports.get(row["bus_id"], (now, []))
                fresh = now - read_at <= self._max_age["details"]
                log = self._logs.get(row["bus_id"], hl_smi.CardLog("", row["bus_id"]))
                cells = log.power if now - self._logs_read_at <= self._max_age["details"] else {}
                power = {rail: hl_smi.read_number(cell, rail, log.bus_id, []) for rail, cell in cells.items()}
                cards.append(Card(row, self._values[row["bus_id"]], log.firmware, ports if fresh else [], power))
            return cards, status

    @staticmethod
    def _attempt(read: Callable[[], None]) -> str | None:
        try:
            read()
        except hl_smi.HlSmiError as error:
            return str(error)
        return None

    def _record(self, kind: str, error: str | None, start: float) -> None:
        with self._lock:
            state, now = self._status[kind], time.monotonic()
            if error != state.error:
                print(f"{kind}: {error or 'read'}", file=sys.stderr, flush=True)
            if error is None:
                self._status[kind] = Status(None, state.errors, now - start, time.time(), now)
            else:
                self._status[kind] = replace(state, error=error, errors=state.errors + 1, seconds=now - start)

    def _read_cards(self) -> None:
        rows = self._tool.query(IDENTITY + READINGS)
        for row in rows:
            hl_smi.require_identity(row)
            row["bus_id"] = row["bus_id"].lower()
        if not rows:
            raise hl_smi.HlSmiError("hl-smi lists no card")
        cells: list[hl_smi.OddCell] = []
        values = {row["bus_id"]: readings(row, cells) for row in rows}
        odd = hl_smi.odd_cell_warnings(cells)
        for sentence in odd if odd != self._odd else []:
            print(f"cards: {sentence}", file=sys.stderr, flush=True)
        self._odd = odd
        known_for = [row["driver_version"] + row["bus_id"] for row in rows]
        with self._lock:
            self._rows, self._values = rows, values
            if known_for != self._known_for or self._status["cards"].error:  # a driver may have been loaded
                self._known_for, self._logs, self._types, self._ports = known_for, {}, {}, {}
                self._queue, self._next_details = [], float("-inf")

    def _read_log(self) -> None:
        logs = self._tool.log().cards
        with self._lock:
            self._logs, self._logs_read_at = logs, time.monotonic()

    def _read_ports(self, bus_id: str) -> None:
        found: list[tuple[int, str, bool]] = []
        try:
            if bus_id not in self._types:
                self._types[bus_id] = self._tool.ports(bus_id)
            ports = self._tool.links(bus_id, self._types[bus_id])
            found = [(port.port, port.type, port.link == "up") for port in ports if port.link is not None]
        except hl_smi.HlSmiError as error:
            raise hl_smi.HlSmiError(f"the ports of card {bus_id} could not be read: {error}") from error
        finally:
            with self._lock:
                self._ports[bus_id] = (time.monotonic(), found)


class Server(socketserver.ThreadingTCPServer):
    """A server of one address; not http.server's, which asks the name service for the host's name."""

    allow_reuse_address = daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    #: Callers that are served at once, and seconds that one has for its whole request and its answer.
    callers, deadline = 16, 10.0

    def __init__(self, address: str, port: int, reader: Reader, tls: ssl.SSLContext | None = None) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.reader, self.tls = reader, tls
        self._open: dict[socket.socket, tuple[float, str]] = {}  # when each caller came, and from where
        self._changed = threading.Condition()
        super().__init__((address, port), Handler)

    def process_request(self, request: object, client_address: object) -> None:
        """Serve a caller in a thread of its own. Where there are too many, the oldest of the busiest address goes."""
        connection: socket.socket = request  # type: ignore[assignment]
        with self._changed:
            if len(self._open) >= self.callers:
                addresses = [address for _since, address in self._open.values()]
                busiest = max(addresses, key=addresses.count)
                self._end(next(each for each, (_since, address) in self._open.items() if address == busiest))
                self._changed.wait_for(lambda: len(self._open) < self.callers, timeout=1)
            if len(self._open) >= self.callers:
                self.shutdown_request(connection)
                return
            self._open[connection] = (time.perf_counter(), str(client_address[0]))  # type: ignore[index]
        super().process_request(connection, client_address)

    def shutdown_request(self, request: object) -> None:
        """A caller has gone."""
        with self._changed:
            self._open.pop(request, None)  # type: ignore[call-overload]
            self._changed.notify_all()
        super().shutdown_request(request)  # type: ignore[arg-type]

    def service_actions(self) -> None:
        """End callers that have been here for too long; asked twice a second."""
        with self._changed:
            now = time.perf_counter()
            for connection in [each for each, (since, _from) in self._open.items() if now - since > self.deadline]:
                self._end(connection)

    @staticmethod
    def _end(connection: socket.socket) -> None:
        """Have the caller's thread find its connection closed; what TLS keeps of it is that thread's."""
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def get_request(self) -> tuple[socket.socket, object]:
        """A connection, whose handshake is left to its own thread: one that hangs holds up no other."""
        try:
            connection, peer = super().get_request()
        except OSError:
            time.sleep(0.1)  # the next caller is there already, and would be asked for without end
            raise
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, peer

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that broke off, or has no certificate, is none of this program's errors."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def client_checking(folder: str) -> ssl.SSLContext:
    """TLS with the certificate and the key in a folder, for callers with a certificate of the authority there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
    context.load_verify_locations(f"{folder}/client_authority")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Handler(BaseHTTPRequestHandler):
    """``/metrics`` and ``/healthz``."""

    timeout = 10
    server: Server

    def do_GET(self) -> None:
        """Answer from what was read last."""
        cards, status = self.server.reader.snapshot()
        error = status["cards"].error
        pages = {
            "/metrics": (200, render(cards, status)),
            "/healthz": (503 if error else 200, f"{error or 'the cards were read'}\n"),
        }
        code, page = pages.get(self.path.partition("?")[0], (404, "the pages are /metrics and /healthz\n"))
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(page.encode())))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not logged."""


def notify(state: str) -> None:
    """Tell systemd, where it listens."""
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(state.encode(), "\0" + path[1:] if path.startswith("@") else path)


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve and read until stopped; a fault of this program ends it, for systemd to start it again."""
    parser = argparse.ArgumentParser(description="Prometheus exporter of Gaudi cards, fed by hl-smi.")
    parser.add_argument("--address", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=41611, help="port to listen on")
    parser.add_argument("--hl-smi", default="/usr/bin/hl-smi", help="path of hl-smi")
    parser.add_argument("--interval", type=float, default=10, help="seconds between readings, at least 5")
    parser.add_argument("--details-interval", type=float, default=30, help="the same for the ports' links")
    parser.add_argument("--timeout", type=float, default=8, help="seconds until a call of hl-smi is killed")
    parser.add_argument(
        "--tls", action="store_true",
        help="serve over TLS, and only callers with a certificate: certificate, key and client_authority lie in the "
        "folder that systemd names in CREDENTIALS_DIRECTORY",
    )  # fmt: skip
    options = parser.parse_args(argv)
    if min(options.interval, options.details_interval) < MINIMUM_INTERVAL:
        parser.error(f"an interval is {MINIMUM_INTERVAL:g} seconds or more: hl-smi itself needs seconds")
    tool = HlSmi(options.hl_smi, Runner(options.timeout, output_limit=OUTPUT_LIMIT))
    reader = Reader(tool, options.timeout, options.interval, options.details_interval)
    try:
        tls = client_checking(os.environ.get("CREDENTIALS_DIRECTORY", "")) if options.tls else None
    except OSError as error:
        sys.exit(f"certificate, key or client_authority cannot be read ({error}): see LoadCredential of the unit")
    try:
        server = Server(options.address, options.port, reader, tls)
    except OSError as error:
        sys.exit(f"cannot listen on {options.address} port {options.port}: {error.strerror}")
    for _reading in ("cards", "log"):  # so that the first page has every label
        reader.step()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    notify("READY=1")
    reader.run()


if __name__ == "__main__":
    main()
