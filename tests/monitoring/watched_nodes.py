"""Simulated nodes under the role's own watch: real exporters, Prometheus with the role's rules, and Alertmanager.

A node is a folder with eight simulated cards and their `hl-smi`, which the collection's exporter reads; node_exporter's
page is a stand-in's, as sound as the node. Everything listens on the loopback interface.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring.test_dashboards_live import free_port
from tests.monitoring.test_inhibition import DEFAULTS as ALERTMANAGER
from tests.monitoring.test_inhibition import program

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests/unit/plugins"))

from health_machine import Nodes

ROOT = Path(__file__).resolve().parents[2]
EXPORTER = ROOT / "roles/hpu_exporter/files/gaudi_hpu_exporter.py"
PROMETHEUS = yaml.safe_load((ROOT / "roles/prometheus/defaults/main.yml").read_text(encoding="utf-8"))
HPU = next(job for job in PROMETHEUS["prometheus_jobs"] if job["name"] == "hpu")
#: What node_exporter serves of a sound node, as far as alerts ask for it; {now} is the time.
SOUND = """node_memory_MemAvailable_bytes 9e11
node_memory_MemTotal_bytes 1e12
node_filesystem_avail_bytes{{mountpoint="/",fstype="ext4"}} 9e11
node_filesystem_size_bytes{{mountpoint="/",fstype="ext4"}} 1e12
node_filesystem_readonly{{mountpoint="/",fstype="ext4"}} 0
node_timex_sync_status 1
node_textfile_scrape_error 0
node_boot_time_seconds 1.7e9
gaudi_health_drains 0
gaudi_health_out_of_service 0
gaudi_health_examination_timestamp_seconds {now}
"""


@dataclass(frozen=True)
class Notified:
    """One alert in a notification."""

    at: float
    """Seconds of the wall clock."""
    alert: str
    instance: str
    status: str


class Watched:
    """The nodes by name, and what the receiver was told."""

    def __init__(self, folder: Path, made: Nodes, names: list[str]) -> None:
        self.folder = folder
        self.nodes = {name: made.loaded("HL-325L") for name in names}
        self.told: list[Notified] = []
        self.dead: set[str] = set()
        self._ports = {name: free_port() for name in names}
        self._exporters: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    def start(self, rules: str) -> None:
        """Begin to watch, by these rules."""
        for name, node in self.nodes.items():
            self._exporter(name, node.machine.root)
        site = self._serve(_handler(self._page))
        receiver = self._serve(_handler(take=self._take))
        alertmanager, prometheus = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.prometheus = f"http://{prometheus}"
        route = json.loads(json.dumps(ALERTMANAGER["alertmanager_route"])) | {"receiver": "operators"}
        route["routes"] = [each | ({"receiver": "nobody"} if "receiver" in each else {}) for each in route["routes"]]
        hook = {"url": f"http://{receiver}/", "send_resolved": True}
        self._write(
            "alertmanager.yml",
            route=route,
            receivers=[{"name": "operators", "webhook_configs": [hook]}, {"name": "nobody"}],
            inhibit_rules=ALERTMANAGER["alertmanager_inhibit_rules"],
        )
        (self.folder / "rules.yml").write_text(rules, encoding="utf-8")
        intervals = {f"{name}_interval": PROMETHEUS[f"prometheus_{name}_interval"] for name in ("scrape", "evaluation")}
        nodes = [self._target(site, name, __metrics_path__=f"/{name}") for name in self.nodes]
        cards = [self._target(f"127.0.0.1:{port}", name) for name, port in self._ports.items()]
        relabel = PROMETHEUS["prometheus_hpu_metric_relabel_configs"]
        self._write(
            "prometheus.yml",
            **{"global": intervals},
            rule_files=["rules.yml"],
            alerting={"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
            scrape_configs=[
                {"job_name": "node", "static_configs": nodes},
                {"job_name": "hpu", "static_configs": cards, "metric_relabel_configs": relabel},
                {"job_name": "prometheus", "static_configs": [self._target(prometheus, "monitor")]},
                {"job_name": "alertmanager", "static_configs": [self._target(alertmanager, "monitor")]},
            ],
        )
        arguments = [
            f"--web.listen-address={alertmanager}",
            "--config.file=alertmanager.yml",
            "--storage.path=messages",
        ]
        self._run("alertmanager", [*program(), *arguments, "--cluster.listen-address="])
        arguments = [f"--web.listen-address={prometheus}", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        self._run("prometheus", ["prometheus", *arguments])

    def close(self) -> None:
        """End all."""
        self._stack.close()

    def page(self, name: str) -> str:
        """What a node's exporter serves now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[name]}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    def put(self, name: str, fault: str, *more: str) -> None:
        """Put a fault on a node."""
        machine = self.nodes[name].machine
        os.environ["GAUDI3_SIMULATOR_ROOT"] = str(machine.root)
        machine.at(time.time())
        machine.ok("node", "fault", fault, *more)

    def die(self, name: str) -> None:
        """Let a node end without a word."""
        self.dead.add(name)
        self._exporters[name].kill()

    def _exporter(self, name: str, root: Path) -> None:
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'simulator/src')!r}); "
            "from gaudi3_simulator.node.hl_smi import main; sys.exit(main(sys.argv[1:], release='1.23.0-695'))"
        )
        tool = self.folder / f"{name}-hl-smi"
        line = f'exec {shlex.quote(sys.executable)} -IS -c {shlex.quote(code)} "$@"'
        tool.write_text(f"#!/bin/sh\nexport GAUDI3_SIMULATOR_ROOT={shlex.quote(str(root))}\n{line}\n")
        tool.chmod(0o755)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins/module_utils")}
        environment.pop("GAUDI3_SIMULATOR_NOW", None)
        words = [str(EXPORTER), f"--port={self._ports[name]}", f"--hl-smi={tool}"]
        self._exporters[name] = self._run(f"exporter-{name}", [sys.executable, *words], environment)

    def _run(
        self, name: str, command: list[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{name}.log").open("wb"))
        process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environment)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return process

    def _serve(self, handler: type[BaseHTTPRequestHandler]) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._stack.callback(server.shutdown)
        return f"127.0.0.1:{server.server_port}"

    def _write(self, name: str, **document: Any) -> None:
        (self.folder / name).write_text(yaml.safe_dump(document), encoding="utf-8")

    def _target(self, address: str, name: str, **labels: str) -> dict[str, Any]:
        return {"targets": [address], "labels": {"instance": name, **labels}}

    def _page(self, path: str) -> bytes | None:
        return None if path.strip("/") in self.dead else SOUND.format(now=time.time()).encode()

    def _take(self, body: bytes) -> None:
        now = time.time()
        for each in json.loads(body)["alerts"]:
            labels = each["labels"]
            self.told.append(Notified(now, labels["alertname"], labels.get("instance", ""), each["status"]))


def _handler(
    page: Callable[[str], bytes | None] = lambda path: b"", take: Callable[[bytes], None] = lambda body: None
) -> type[BaseHTTPRequestHandler]:
    """`page` gives what stands at a path, or None where the connection just ends; `take` gets what is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page(self.path)
            if body is not None:
                self._say(body)

        def do_POST(self) -> None:
            take(self.rfile.read(int(self.headers["Content-Length"])))
            self._say(b"")

        def _say(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    return Handler


@contextmanager
def watched(folder: Path, made: Nodes, names: list[str], rules: str) -> Iterator[Watched]:
    """Nodes that are watched from here on."""
    one = Watched(folder, made, names)
    try:
        one.start(rules)
        yield one
    finally:
        one.close()
