"""Pages of exporters as the metric contract has them, whose counters grow: what a cluster with everything serves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CONTRACT: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "docs" / "reference" / "metrics.yml").read_text(encoding="utf-8")
)["metrics"]
#: Who serves a metric, by the path of the page.
SOURCES = {
    "node": {"node_exporter"},
    "hpu": {"hl_smi", "intel"},
    "training": {"trainer"},
    "serving": {"vllm", "haproxy"},
    "prometheus": {"prometheus"},
    "alertmanager": {"alertmanager"},
}
#: The pages that each node has.
OF_NODES = ("node", "hpu", "training")
#: What Prometheus says of each target by itself.
OF_TARGETS = ("up", "scrape_")
#: Labels whose values queries choose by; the others have one value.
VALUES = {
    "id": ["0", "1"],
    "port_type": ["internal", "external"],
    "kind": ["corrected", "uncorrected"],
    "part": ["compute", "data_wait", "restart_loss"],
    "mode": ["idle", "user"],
    "span": ["volatile"],
    "reading": ["cards"],
    "state": ["failed", "activating", "UP"],
    "proxy": ["api", "replicas"],
    "server": ["replica-1"],
    "replica": ["replica-1"],
    "code": ["2xx", "5xx"],
    "fstype": ["ext4"],
}
#: Values that are not 1.
GAUGES = {
    "gaudi_training_max_steps": 1e6,
    "habanalabs_memory_total_bytes": 2,
    "node_filesystem_readonly": 0,
    "node_filesystem_size_bytes": 2,
    "node_memory_MemTotal_bytes": 2,
}
GROWING = {"gaudi_training_step"}
#: What a sound cluster serves where the values above have an alert fire.
SOUND: dict[str, float] = {
    "gaudi_certificate_expiry_timestamp_seconds": 4e9,
    "gaudi_cost_budget": 1e6,
    "gaudi_cost_budget_left": 9e5,
    "gaudi_cost_spent": 1e5,
    "gaudi_health_drains": 0,
    "gaudi_health_out_of_service": 0,
    "habanalabs_pci_link_width": 16,
    "habanalabs_pending_rows_state": 0,
    "habanalabs_temperature_onchip": 50,
    "habanalabs_temperature_threshold_slowdown": 100,
    "habanalabs_utilization": 90,
    "node_systemd_unit_state": 0,
    "node_textfile_scrape_error": 0,
    "haproxy_frontend_http_responses_total": 0,
    "vllm:num_requests_waiting": 0,
} | dict.fromkeys(
    [
        "gaudi_card_ecc_errors_total", "gaudi_training_anomalies_total", "gaudi_training_skipped_steps_total",
        "gaudi_training_checkpoint_upload_failures_total", "gaudi_training_report_write_failures_total",
        "node_network_carrier_changes_total", "promhttp_metric_handler_errors_total",
    ],
    0,
)  # fmt: skip
BUCKETS = {"0.1": 1, "1": 2, "+Inf": 3}


def series(metric: dict[str, Any]) -> Iterator[str]:
    """The names of a metric's series with their labels."""
    for chosen in itertools.product(*(VALUES.get(label, ["x"]) for label in metric["labels"])):
        yield ",".join(f'{label}="{value}"' for label, value in zip(metric["labels"], chosen, strict=True))


def page(path: str, since: float, sound: bool = False) -> str:
    """The page of one exporter; that of a ``sound`` one has no alert fire."""
    age = time.time() - since
    lines = []
    for metric in CONTRACT:
        name = metric["name"]
        if not SOURCES[path] & set(metric["sources"]) or name.startswith(OF_TARGETS):
            continue
        for labels in series(metric):
            if metric["type"] == "histogram":
                more = f"{labels}," if labels else ""
                lines += [f'{name}_bucket{{{more}le="{limit}"}} {share * age}' for limit, share in BUCKETS.items()]
                lines += [f"{name}_sum{{{labels}}} {age}", f"{name}_count{{{labels}}} {3 * age}"]
                continue
            if sound and name in SOUND:
                value = SOUND[name]
            elif name.endswith("_timestamp_seconds"):
                value = since
            else:
                value = age if metric["type"] == "counter" or name in GROWING else GAUGES.get(name, 1)
            lines.append(f"{name}{{{labels}}} {value}")
    return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    """Serves the pages."""

    since = time.time()

    def body(self, path: str) -> bytes:
        """What stands at a path."""
        return page(path, self.since).encode()

    def do_GET(self) -> None:
        body = self.body(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
