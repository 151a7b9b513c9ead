#!/usr/bin/env python3
"""Take the pictures of Prometheus' pages in docs/ from the simulated cluster, after `make demo`.

Puts the faults into the nodes that the pictures show, waits until they are seen, and takes the faults out again.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from PIL import Image

from gaudi3_simulator.home import load_cluster

DOCS = Path(__file__).resolve().parents[2] / "docs" / "operate"
#: A port needs two minutes to be down for an alert; seconds.
PATIENCE = 600
COLOURS = 64
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: As Prometheus' own buttons do it: only what fires is shown, and opened with what it says.
OPENED = """<script>$(function() {
  $("#inactiveAlerts").parent().removeClass("active").find("i").toggleClass("glyphicon-check glyphicon-unchecked");
  $("#alertsTable > tbody > tr.alert-success").hide();
  $("div.show-annotations").click();
  $(".alert-danger.alert_header:not(:contains(Watchdog))").next().show().find("pre").hide();
});</script></body>"""


@dataclass(frozen=True)
class Picture:
    """A page as it looks under some faults; ``size`` is its width and height in pixels."""

    page: str
    faults: tuple[tuple[str, ...], ...]
    alerts: tuple[str, ...]
    size: tuple[int, int]


PICTURES = {
    "prometheus-alerts.png": Picture(
        "/classic/alerts",
        (("gaudi-1", "port-down", "--card", "3"), ("gaudi-2", "ecc-uncorrected")),
        ("HpuExternalPortDown", "HpuMemoryErrorUncorrected"),
        (1000, 1140),
    )
}


class Prometheus:
    """The cluster's Prometheus, asked with its password and over its certificate."""

    def __init__(self, name: str) -> None:
        cluster = load_cluster(name)
        if cluster is None or cluster.monitor is None:
            sys.exit(f"Cluster {name} is not up, or has no monitoring host: run make demo CLUSTER={name}.")
        secrets = cluster.folder / "secrets"
        if not (secrets / "prometheus_password").exists():
            sys.exit(f"Cluster {name} has no Prometheus: run make demo CLUSTER={name}.")
        password = (secrets / "prometheus_password").read_text().strip()
        self._login = base64.b64encode(f"prometheus:{password}".encode()).decode()
        self._context = ssl.create_default_context(cafile=str(secrets / "ca.crt"))
        self._url = f"https://{cluster.monitor.address}:9090"

    def get(self, path: str) -> tuple[str, bytes]:
        """Type and content of a page."""
        request = urllib.request.Request(self._url + path, headers={"Authorization": f"Basic {self._login}"})
        with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
            return answer.headers["Content-Type"], answer.read()

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        found = json.loads(self.get("/api/v1/alerts")[1])["data"]["alerts"]
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def wait(self, alerts: tuple[str, ...]) -> None:
        """Wait until all of these alerts fire."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not (missing := set(alerts) - self.firing()):
                return
            time.sleep(5)
        sys.exit(f"{', '.join(sorted(missing))} did not fire within {PATIENCE} seconds.")

    @contextmanager
    def opened(self) -> Iterator[str]:
        """The address on this machine at which a browser gets the pages without a password."""
        get = self.get

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, content = get(self.path)
                if kind.startswith("text/html"):
                    content = content.replace(b"</body>", OPENED.encode())
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()


def browser() -> str:
    """The browser of this machine."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    sys.exit("Pictures are taken with Chromium, which is missing: apt-get install chromium")


def shrink(file: Path) -> None:
    """A page has few colours, and the picture is part of what users download."""
    with Image.open(file) as taken:
        taken.convert("RGB").quantize(COLOURS).save(file, optimize=True)


def take(name: str, program: str, file: Path, picture: Picture) -> None:
    """Write one picture."""
    prometheus = Prometheus(name)
    others = prometheus.firing() - {*picture.alerts, "Watchdog"}
    if others:
        sys.exit(f"{', '.join(sorted(others))} fires already and would be in {file.name}: wait until it has ended.")
    fault = ["gaudi3-simulator", "fault", "--name", name]
    put: list[tuple[str, ...]] = []
    try:
        for each in picture.faults:
            put.append(each)
            subprocess.run([*fault, *each], check=True)
        prometheus.wait(picture.alerts)
        with prometheus.opened() as address, tempfile.TemporaryDirectory() as profile:
            # Chromium's sandbox does not work for root, as whom the nodes are up; the page is the cluster's own.
            given = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
            given += [f"--window-size={picture.size[0]},{picture.size[1]}", "--virtual-time-budget=10000"]
            subprocess.run(
                [program, *given, f"--screenshot={file}", address + picture.page], check=True, capture_output=True
            )
        shrink(file)
    finally:
        for each in put:
            subprocess.run([*fault, *each, "--clear"], check=False)
    print(f"{file}: look at it before you commit it")


def main() -> None:
    """Write all pictures."""
    program = browser()
    for name, picture in PICTURES.items():
        take(os.environ.get("GAUDI3_SIMULATOR_CLUSTER") or "demo", program, DOCS / name, picture)


if __name__ == "__main__":
    main()
