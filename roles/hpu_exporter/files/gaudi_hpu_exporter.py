# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Prometheus exporter of a node's Gaudi cards, fed by hl-smi.

It serves Intel's metric names and labels (``habanalabs_*``) where hl-smi knows the value, ``gaudi_card_*``
where it knows more, and ``gaudi_hpu_exporter_*`` about itself. docs/metrics.yml lists them.

One thread calls hl-smi, once at a time; a scrape prints what it read last, and never waits. What could not be
read is absent, never 0 and never an old value: a failed or overdue reading takes its series off the page and
sets ``gaudi_hpu_exporter_read_success`` to 0. ``/healthz`` says why in one sentence.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ansible_collections.gaudi3.scale.plugins.module_utils import hl_smi
else:
    import hl_smi  # the collection's parser of hl-smi's texts, installed beside this file

MIB = 1024 * 1024
MINIMUM_INTERVAL = 5.0
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
INTEL, OWN, SELF = "habanalabs_", "gaudi_card_", "gaudi_hpu_exporter_"

ECC = {
    f"ecc.errors.{kind}.{span}.total": {"kind": kind.replace("-", "_"), "span": span}
    for kind in ("corrected", "uncorrected", "dram", "dram-corrected")
    for span in ("volatile", "aggregate")
}
ECC_TEXT = "Memory errors: span volatile since the driver was loaded, aggregate over the card's life."
THROTTLE = {f"stats.violation.{cause}": {"cause": cause} for cause in ("power", "thermal")}
THROTTLE_TEXT = "hl-smi's stats.violation by cause; its unit is not documented: growth means throttling."
# Name, help text, factor, and the series: field of hl-smi -Q and its extra labels.
METRICS: tuple[tuple[str, str, int, dict[str, dict[str, str]]], ...] = (
    (INTEL + "clock_soc_mhz", "Clock of the SoC in MHz.", 1, {"clocks.current.soc": {}}),
    (INTEL + "clock_soc_max_mhz", "Highest clock of the SoC in MHz.", 1, {"clocks.max.soc": {}}),
    (INTEL + "ecc_feature_mode", "Error correction of the memory, 1 is on.", 1, {"ecc.mode.current": {}}),
    (INTEL + "memory_free_bytes", "Free memory of the card.", MIB, {"memory.free": {}}),
    (INTEL + "memory_total_bytes", "Memory of the card.", MIB, {"memory.total": {}}),
    (INTEL + "memory_used_bytes", "Used memory of the card.", MIB, {"memory.used": {}}),
    (INTEL + "pci_link_speed", "Speed of the PCIe link in GT/s.", 1, {"pcie.link.speed.current": {}}),
    (INTEL + "pci_link_width", "Lanes of the PCIe link in use.", 1, {"pcie.link.width.current": {}}),
    (INTEL + "power_default_limit_mW", "Power limit in milliwatts.", 1000, {"power.max": {}}),
    (INTEL + "power_mW", "Power drawn from the 54 V rail in milliwatts.", 1000, {"power.draw": {}}),
    (INTEL + "temperature_onchip", "Temperature of the chip in Celsius.", 1, {"temperature.aip": {}}),
    (INTEL + "utilization", "Utilization of the card in percent.", 1, {"utilization.aip": {}}),
    (OWN + "ecc_errors_total", ECC_TEXT, 1, ECC),
    (OWN + "memory_utilization_percent", "Load of the memory in percent.", 1, {"utilization.memory": {}}),
    (OWN + "pci_link_speed_max", "Full speed of the PCIe link in GT/s.", 1, {"pcie.link.speed.max": {}}),
    (OWN + "pci_link_width_max", "Lanes of a sound PCIe link.", 1, {"pcie.link.width.max": {}}),
    (OWN + "throttle_violation", THROTTLE_TEXT, 1, THROTTLE),
)
IDENTITY = ("index", "module_id", "bus_id", "name", "uuid", "serial", "driver_version")
READINGS = tuple(source for *_rest, series in METRICS for source in series)
# The vendor does not say how these are printed: words are left out without a line in the journal.
WORDS = ("ecc.mode.current", "stats.violation.power", "stats.violation.thermal")


class Hung(hl_smi.HlSmiError):
    """hl-smi gave no answer in time."""


def reading(row: dict[str, str], name: str) -> int | None:
    """The number in a csv cell, or None where the tool has none (``N/A``) or prints what cannot be read."""
    try:
        return hl_smi.number(row.get(name), name)
    except hl_smi.HlSmiError:
        return {"enabled": 1, "disabled": 0}.get(row[name].lower())


def parse_rows(output: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    """The cards of ``-Q FIELDS -f csv,noheader,nounits``; each row names its card."""
    rows = hl_smi.parse_csv(output, fields)
    for row in rows:
        hl_smi.require_identity(row)
        row["bus_id"] = row["bus_id"].lower()
    if not rows:
        raise hl_smi.HlSmiError("hl-smi lists no card")
    return rows


class Tool:
    """hl-smi. Calls must come one at a time."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self.timeout = timeout
        self._hung: subprocess.Popen[str] | None = None

    def run(self, *arguments: str) -> str:
        """What hl-smi prints. A call that hangs is killed, and no other is started until it is gone."""
        if self._hung is not None and self._hung.poll() is None:
            raise Hung("hl-smi is still held in the kernel since a call that had to be killed")
        try:
            process = subprocess.Popen(
                [self._path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(os.environ, LC_ALL="C", ENABLE_CONSOLE="true"),
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise hl_smi.HlSmiError(f"{self._path} cannot be started ({error.strerror})") from error
        try:
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # and not waited for: the kernel may hold it
            self._hung = process
            raise Hung(f"hl-smi gave no answer in {self.timeout:g} seconds") from None
        if process.returncode == 1:
            raise hl_smi.HlSmiError("hl-smi says that the driver is not up (exit code 1)")
        if process.returncode != 0:
            said = hl_smi.quote(errors.strip() or output or "nothing")
            raise hl_smi.HlSmiError(f"hl-smi ended with code {process.returncode} and said {said}")
        return output


@dataclass(frozen=True)
class Status:
    """How one kind of reading fares."""

    error: str | None = "nothing was read yet"
    errors: int = 0
    seconds: float = 0.0
    last_success: float = 0.0  # by the wall clock
    read_at: float = 0.0  # by the clock that never jumps


@dataclass(frozen=True)
class Card:
    """A card's csv row, firmware versions, ports (number, type, whether the link is up) and power by rail."""

    row: dict[str, str]
    firmware: dict[str, str]
    ports: list[tuple[int, str, bool]]
    power: dict[str, str] = field(default_factory=dict)


class Reader:
    """Reads all cards every ``interval`` seconds and, in between, the log and the ports, one call at a time."""

    def __init__(self, tool: Tool, interval: float, details_interval: float) -> None:
        self._tool = tool
        self._interval, self._details_interval = interval, details_interval
        self._max_age = {"cards": 2 * interval + tool.timeout, "details": 3 * details_interval + tool.timeout}
        self._lock = threading.Lock()
        self._status = {"cards": Status(), "details": Status()}
        self._rows: list[dict[str, str]] = []
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
                power = log.power if now - self._logs_read_at <= self._max_age["details"] else {}
                cards.append(Card(row, log.firmware, ports if fresh else [], power))
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
        fields = IDENTITY + READINGS
        try:
            rows = self._query(fields)
        except Hung:
            raise
        except hl_smi.HlSmiError:  # an older tool refuses the whole list for a field that it does not know
            rows = self._query(tuple(name for name in fields if name not in hl_smi.UNCONFIRMED_FIELDS))
        odd = hl_smi.odd_cell_warnings(hl_smi.odd_cells(rows, [name for name in READINGS if name not in WORDS]))
        for sentence in odd if odd != self._odd else []:
            print(f"cards: {sentence}", file=sys.stderr, flush=True)
        self._odd = odd
        known_for = [row["driver_version"] + row["bus_id"] for row in rows]
        with self._lock:
            self._rows = rows
            if known_for != self._known_for or self._status["cards"].error:  # a driver may have been loaded
                self._known_for, self._logs, self._types, self._ports = known_for, {}, {}, {}
                self._queue, self._next_details = [], float("-inf")

    def _query(self, fields: tuple[str, ...]) -> list[dict[str, str]]:
        return parse_rows(self._tool.run("-Q", ",".join(fields), "-f", "csv,noheader,nounits"), fields)

    def _read_log(self) -> None:
        logs = hl_smi.parse_log(self._tool.run("-L")).cards
        with self._lock:
            self._logs, self._logs_read_at = logs, time.monotonic()

    def _read_ports(self, bus_id: str) -> None:
        found: list[tuple[int, str, bool]] = []
        try:
            if bus_id not in self._types:
                self._types[bus_id] = hl_smi.parse_ports(self._tool.run("-n", "ports", "-i", bus_id))
            types = {port.port: port.type for port in self._types[bus_id]}
            numbers = ",".join(map(str, types))
            links = hl_smi.parse_links(self._tool.run("-n", "link", "-i", bus_id, "-P", numbers))
            found = [(port, types[port], links[port] == "up") for port in types if port in links]
        except hl_smi.HlSmiError as error:
            raise hl_smi.HlSmiError(f"the ports of card {bus_id} could not be read: {error}") from error
        finally:
            with self._lock:
                self._ports[bus_id] = (time.monotonic(), found)


def numbers(series: list[tuple[dict[str, str], int | None]], factor: int = 1) -> list[tuple[dict[str, str], float]]:
    """The series that have a value."""
    return [(labels, float(value * factor)) for labels, value in series if value is not None]


def render(cards: list[Card], status: dict[str, Status]) -> str:
    """The page, in Prometheus' text format; a metric without series is not named."""
    page: list[str] = []

    def add(name: str, text: str, series: list[tuple[dict[str, str], float]]) -> None:
        if series:
            kind = "counter" if name.endswith("_total") else "gauge"
            page.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}"))
        for labels, value in series:
            pairs = ",".join(f'{label}="{cell.translate(ESCAPES)}"' for label, cell in labels.items())
            page.append(f"{name}{{{pairs}}} {int(value) if value == int(value) else value}")

    known = [(card, {name: hl_smi.text(card.row[name]) or "" for name in IDENTITY}) for card in cards]
    intel = [
        {
            "Serial": row["serial"],
            "UUID": row["uuid"],
            "device": row["serial"],
            "driver": row["driver_version"],
            "fit": card.firmware.get("uboot") or card.firmware.get("fit", ""),
            "id": row["index"],
            "pod_name": "",
            "pod_namespace": "",
            "spi": card.firmware.get("spi", ""),
        }
        for card, row in known
    ]
    own = [{"device": row["serial"], "id": row["index"]} for _key, row in known]
    for name, text, factor, sources in METRICS:
        found = [
            ({**labels, **extra}, reading(card.row, source))
            for card, labels in zip(cards, own if name.startswith(OWN) else intel)  # noqa: B905
            for source, extra in sources.items()
        ]
        add(name, text, numbers(found, factor))
    rails = [
        ({**labels, "rail": rail}, reading(card.power, rail))
        for card, labels in zip(cards, own)  # noqa: B905
        for rail in sorted(card.power)
    ]
    add(OWN + "power_watts", "Power drawn from one rail of the card; the card draws their sum.", numbers(rails))
    add(INTEL + "device_config", "1 for each card.", [(labels, 1.0) for labels in intel])
    ports = [
        ({**labels, "port": str(port), "port_type": kind}, float(up))
        for card, labels in zip(cards, intel)  # noqa: B905
        for port, kind, up in card.ports
    ]
    add(INTEL + "nic_port_status", "Link of a network port, 1 is up.", ports)
    place = [{name: row[name] for name in ("bus_id", "module_id", "name")} for _key, row in known]
    info = [({**labels, **extra}, 1.0) for labels, extra in zip(own, place)]  # noqa: B905
    add(OWN + "info", "1 for each card, with its PCI address and module id.", info)
    states = [({"reading": kind}, state) for kind, state in status.items()]
    fresh = [(labels, float(state.error is None)) for labels, state in states]
    add(SELF + "read_success", "1 where the last reading succeeded and is fresh.", fresh)
    add(SELF + "read_errors_total", "Readings that failed.", [(who, float(s.errors)) for who, s in states])
    add(SELF + "read_seconds", "How long the last reading took.", [(who, s.seconds) for who, s in states])
    last = [(who, s.last_success) for who, s in states if s.last_success]
    add(SELF + "last_success_timestamp_seconds", "When a reading last succeeded.", last)
    return "\n".join(page) + "\n"


class Server(socketserver.ThreadingTCPServer):
    """A server of one address; not http.server's, which asks the name service for the host's name."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address: str, port: int, reader: Reader) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.reader = reader
        super().__init__((address, port), Handler)


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
    options = parser.parse_args(argv)
    if min(options.interval, options.details_interval) < MINIMUM_INTERVAL:
        parser.error(f"an interval is {MINIMUM_INTERVAL:g} seconds or more: hl-smi itself needs seconds")
    reader = Reader(Tool(options.hl_smi, options.timeout), options.interval, options.details_interval)
    try:
        server = Server(options.address, options.port, reader)
    except OSError as error:
        sys.exit(f"cannot listen on {options.address} port {options.port}: {error.strerror}")
    for _reading in ("cards", "log"):  # so that the first page has every label
        reader.step()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    notify("READY=1")
    reader.run()


if __name__ == "__main__":
    main()
