"""What one fault sends, by a real Alertmanager with the role's own configuration.

Needs prometheus-alertmanager (Debian: apt-get download prometheus-alertmanager, and dpkg -x).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.test_alerts import ALERTS, CASES
from tests.monitoring.test_dashboards_live import free_port

ROLE = Path(__file__).resolve().parents[2] / "roles" / "alertmanager"
DEFAULTS = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
TEMPLATES = Path("/usr/share/prometheus/alertmanager")
#: The role has 10 s for alerts that belong together and 5 min for more of them; a test has less time.
WAIT = 1


def configuration(url: str) -> dict[str, Any]:
    """The configuration as the role writes it with its defaults and one receiver."""
    route = json.loads(json.dumps(DEFAULTS["alertmanager_route"]))
    route |= {"receiver": "operators", "group_wait": f"{WAIT}s", "group_interval": f"{WAIT}s"}
    for one in route["routes"]:
        if "receiver" in one:
            one["receiver"] = "nobody"
    return {
        "route": route,
        "receivers": [{"name": "operators", "webhook_configs": [{"url": url}]}, {"name": "nobody"}],
        "inhibit_rules": DEFAULTS["alertmanager_inhibit_rules"],
    }


def program() -> list[str]:
    """The command, in a file system of its own where the package is unpacked and not installed.

    Debian's Alertmanager reads its templates from where the package has them.
    """
    binary = Path(str(shutil.which("prometheus-alertmanager")))
    if TEMPLATES.is_dir():
        return [str(binary)]
    unpacked = binary.parents[1] / TEMPLATES.relative_to("/usr")
    script = (
        f"mount -t tmpfs none /usr/share && mkdir -p {TEMPLATES} && cp {unpacked}/*.tmpl {TEMPLATES}"
        f' && exec {binary} "$@"'
    )
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "alertmanager"]


@pytest.fixture(scope="module")
def send(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[list[dict[str, str]]], list[list[str]]]]:
    """Gives alerts to Alertmanager, and returns the notifications that come, each as its alerts' names and nodes."""
    folder = tmp_path_factory.mktemp("alertmanager")
    notified: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notified.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    document = configuration(f"http://127.0.0.1:{server.server_port}/")
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    arguments = [f"--web.listen-address={address}", "--config.file=alertmanager.yml", "--storage.path=data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*program(), *arguments, "--cluster.listen-address="], cwd=folder, stdout=log, stderr=log
        )

    def post(alerts: list[dict[str, str]]) -> None:
        body = json.dumps([{"labels": labels} for labels in alerts]).encode()
        request = urllib.request.Request(
            f"http://{address}/api/v2/alerts", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=10):
            pass

    def give(alerts: list[dict[str, str]]) -> list[list[str]]:
        notified.clear()
        post(alerts)
        time.sleep(WAIT + 0.7)
        return sorted(
            sorted(
                f"{one['labels']['alertname']} {one['labels'].get('instance', '')}".strip() for one in each["alerts"]
            )
            for each in notified
        )

    try:
        end = time.monotonic() + 30
        while True:
            try:
                post([])
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.1)
        yield give
    finally:
        process.terminate()
        process.wait()
        server.shutdown()


def alert(name: str, instance: str, /, **labels: str) -> dict[str, str]:
    """An alert as Prometheus sends it."""
    example: dict[str, str] = CASES[name]["fires"][0]["labels"] if name in CASES else {}
    static: dict[str, str] = ALERTS[name]["labels"]
    return {"alertname": name} | static | example | {"instance": instance} | labels


def test_a_dead_node_is_one_notification(send: Callable[[list[dict[str, str]]], list[list[str]]]) -> None:
    others = [name for name in ALERTS if name != "NodeDown" and "instance" in CASES[name]["fires"][0]["labels"]]
    assert len(others) > 45
    dead = [alert(name, "dead-1") for name in ("NodeDown", *others)]
    assert send(dead) == [["NodeDown dead-1"]]


def test_another_node_is_heard_beside_it(send: Callable[[list[dict[str, str]]], list[list[str]]]) -> None:
    assert send([alert("NodeDown", "dead-2"), alert("HpuCardMissing", "sound-2")]) == [
        ["HpuCardMissing sound-2"],
        ["NodeDown dead-2"],
    ]


def test_a_job_that_stands_still_on_eight_nodes_is_one_notification(
    send: Callable[[list[dict[str, str]]], list[list[str]]],
) -> None:
    nodes = [f"job-{number}" for number in range(1, 9)]
    stalled = [alert(name, node) for node in nodes for name in ("TrainingStalled", "TrainingSlower")]
    assert send(stalled) == [[f"TrainingStalled {node}" for node in nodes]]


@pytest.mark.parametrize(
    ("cause", "consequence", "same"),
    [
        ("NodeFilesystemFull", "NodeFilesystemFillsUp", {"mountpoint": "/var"}),
        ("HpuNoCards", "HpuCardMissing", {}),
        ("HpuInternalPortDown", "HpuExternalPortDown", {"id": "3"}),
        ("HpuInternalPortDown", "HpuHeldIdle", {}),
        ("HpuMemoryErrorUncorrected", "HpuMemoryErrorsRising", {"id": "3"}),
        ("CostBudgetSpent", "CostBudgetNearlySpent", {}),
        ("CostBudgetSpent", "CostBudgetEndsFirst", {}),
        ("TrainingHung", "NodeServiceFailed", {"name": "gaudi-train-demo.service"}),
        ("CertificateEndsSoon", "CertificateExpires", {"service": "grafana", "certificate": "server"}),
    ],
)
def test_what_another_alert_explains_is_not_sent(
    cause: str, consequence: str, same: dict[str, str], send: Callable[[list[dict[str, str]]], list[list[str]]]
) -> None:
    both, other = f"both-{cause}-{consequence}", f"other-{cause}-{consequence}"
    different = {key: f"{value}x" for key, value in same.items()}
    apart = [alert(consequence, both, **different)] if same else [alert(consequence, other)]
    sent = send([alert(cause, both, **same), alert(consequence, both, **same), *apart])
    assert sent == sorted([[f"{cause} {both}"], [f"{consequence} {both if same else other}"]])
