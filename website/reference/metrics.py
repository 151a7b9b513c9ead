"""The page of all metrics, from the contract."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from website.reference.text import ROOT, code, document, prose, table

TITLE = "Metrics"
SOURCES = {
    "hl_smi": "role hpu_exporter, kind hl_smi: this collection's exporter, fed by hl-smi",
    "intel": "role hpu_exporter, kind intel: Intel's exporter, by its source; not run in this project's tests",
    "trainer": "`gaudi3-train`, on the first process of each node",
    "node_exporter": "role node_exporter",
    "vllm": "vLLM, each replica of the role serving",
    "haproxy": "HAProxy, the balancer of the role serving",
    "prometheus": "Prometheus itself, or Prometheus about its targets",
    "alertmanager": "Alertmanager itself",
}
#: What names begin with, and the heading over them; the first that fits.
GROUPS = (
    ("habanalabs_", "Cards: Intel's names"),
    ("gaudi_training_", "Training"),
    ("gaudi_cost_", "Cost"),
    ("gaudi_", "Nodes and cards: this project's names"),
    ("vllm:", "Served models"),
    ("haproxy_", "Served models"),
    ("node_", "Hosts: node_exporter"),
    ("", "Monitoring itself"),
)


@cache
def contract() -> Mapping[str, Any]:
    """The contract: sets of labels, and all metrics."""
    found: Mapping[str, Any] = yaml.safe_load((ROOT / "docs/reference/metrics.yml").read_text(encoding="utf-8"))
    return found


def group(name: str) -> str:
    """The heading over a metric."""
    return next(heading for start, heading in GROUPS if name.startswith(start))


def page() -> str:
    """The page."""
    metrics = contract()["metrics"]
    sources = {source for each in metrics for source in each["sources"]}
    parts = [
        f"# {TITLE}",
        "Every metric that exporters and the trainer serve, for whoever writes a query, an alert or a dashboard. "
        "Alerts and dashboards of the collection use no other. Prometheus adds the labels `job` and `instance` to "
        "each, and the suffixes `_bucket`, `_sum` and `_count` to a histogram. A unit of 1 is a plain number, a state "
        "or a count.",
        table(
            ("labels", "are"),
            [(f"*{name}*", ", ".join(map(code, labels))) for name, labels in contract()["label_sets"].items()],
        ),
        table(("source", "who serves it"), [(code(name), what) for name, what in SOURCES.items() if name in sources]),
    ]
    for heading in dict.fromkeys(heading for _start, heading in GROUPS):
        rows = [row(each) for each in metrics if group(each["name"]) == heading]
        if rows:
            parts += [f"## {heading}", table(("metric", "type", "unit", "labels", "sources", "what"), rows)]
    parts += ["## Next", "- [Alerts](alerts.md): which metrics wake somebody\n- [Monitoring](../operate/monitoring.md)"]
    return document(*parts)


def row(metric: Mapping[str, Any]) -> tuple[str, ...]:
    """A metric as a row."""
    own = metric.get("labels", [])
    known = next((f"*{name}*" for name, labels in contract()["label_sets"].items() if labels == own), "")
    labels = known or ", ".join(code(str(each)) for each in own)
    sources = ", ".join(str(each) for each in metric["sources"])
    return code(metric["name"]), metric["type"], str(metric["unit"]), labels, sources, prose(str(metric["help"]))
