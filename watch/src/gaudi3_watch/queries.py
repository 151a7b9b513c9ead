"""What is asked of a cluster's Prometheus. Every metric here is one of the contract in docs/reference/metrics.yml.

`$node` stands for the matcher of one node, `$where` for that of the node that is chosen, if any, and `$window` for a
little more than the time between two points of a chart.
"""

from __future__ import annotations

from dataclasses import dataclass

SCRAPES = 120
"""Seconds in which a rate has two samples at least, however seldom Prometheus asks."""


@dataclass(frozen=True)
class Range:
    """A line or several of a chart; ``label`` names the label that tells them apart."""

    query: str
    name: str = ""
    label: str = ""


#: Tables and tiles: one value per series, now.
INSTANT: dict[str, str] = {
    "targets": "up",
    "training": "gaudi_training_info",
    "step": "gaudi_training_step",
    "max_steps": "gaudi_training_max_steps",
    "world_size": "gaudi_training_world_size",
    "loss": "gaudi_training_loss",
    "speed": 'gaudi_training_tokens_per_second{window="wall"}',
    "mfu": 'gaudi_training_mfu_ratio{window="wall"}',
    "skipped": "gaudi_training_skipped_steps_total",
    "goodput": "gaudi_training_goodput_seconds_total",
    "spent": "gaudi_cost_spent",
    "budget": "gaudi_cost_budget",
    "left": "gaudi_cost_budget_left",
    "price": "gaudi_cost_price_per_hour",
    "per_million": "gaudi_cost_per_million_tokens",
    "payer": "gaudi_cost_info",
    "cards": "gaudi_card_info or habanalabs_device_config",
    "temperature": "habanalabs_temperature_onchip{$where}",
    "power": "habanalabs_power_mW{$where} / 1000",
    "utilization": "habanalabs_utilization{$where}",
    "memory": "100 * habanalabs_memory_used_bytes{$where} / habanalabs_memory_total_bytes{$where}",
    "uncorrected": 'gaudi_card_ecc_errors_total{kind="uncorrected",span="volatile",$where}',
    "ports": "count by (instance, id) (habanalabs_nic_port_status{$where})",
    "ports_down": "count by (instance, id) (habanalabs_nic_port_status{$where} == 0)",
    "hangs": "max by (name, state, sentence) (gaudi_training_hang_timestamp_seconds)",
    "drains": "gaudi_health_drains",
    "out": "gaudi_health_out_of_service",
    "verdicts": "sum by (instance, kind, severity) (gaudi_health_verdicts) > 0",
    "check_errors": "gaudi_health_check_errors",
    "examined": "gaudi_health_examination_timestamp_seconds",
}

#: Charts: the lines of each, over time.
CHARTS: dict[str, tuple[Range, ...]] = {
    "loss": (
        Range("gaudi_training_loss{$node}", "training loss"),
        Range("gaudi_training_validation_loss{$node}", "held-out loss"),
        Range("gaudi_training_baseline_loss{$node}", "baseline"),
    ),
    "speed": (Range('gaudi_training_tokens_per_second{window="wall",$node}', "tokens/s"),),
    "step": (
        Range(
            "rate(gaudi_training_step_seconds_sum{$node}[$window])"
            " / rate(gaudi_training_step_seconds_count{$node}[$window])",
            "seconds per step",
        ),
    ),
    "gradient": (Range("gaudi_training_gradient_norm{$node}", "gradient norm"),),
    "parts": (
        Range(
            "100 * gaudi_training_goodput_seconds_total{$node} / ignoring (part) group_left "
            "sum without (part) (gaudi_training_goodput_seconds_total{$node})",
            label="part",
        ),
    ),
    "spent": (Range("gaudi_cost_spent", "spent"), Range("gaudi_cost_budget", "budget")),
    "temperature": (
        Range("max(habanalabs_temperature_onchip)", "hottest card"),
        Range("quantile(0.5, habanalabs_temperature_onchip)", "median"),
        Range("min(habanalabs_temperature_onchip)", "coolest card"),
    ),
    "power": (Range("sum(habanalabs_power_mW) / 1e6", "all cards"),),
    "utilization": (
        Range("max(habanalabs_utilization)", "busiest card"),
        Range("quantile(0.5, habanalabs_utilization)", "median"),
        Range("min(habanalabs_utilization)", "least busy card"),
    ),
    "ports": (Range("sum by (port_type) (habanalabs_nic_port_status == bool 0)", label="port_type"),),
}

#: The same of one node's cards, each by itself.
OF_A_NODE: dict[str, tuple[Range, ...]] = {
    "temperature": (Range("max by (id) (habanalabs_temperature_onchip{$where})", label="id"),),
    "power": (Range("max by (id) (habanalabs_power_mW{$where}) / 1000", label="id"),),
    "utilization": (Range("max by (id) (habanalabs_utilization{$where})", label="id"),),
    "ports": (Range("sum by (port_type) (habanalabs_nic_port_status{$where} == bool 0)", label="port_type"),),
}

#: Who trained in a span of time, and on what.
ANYTHING = "count(up)"
"""Of whatever Prometheus has asked: where its figures begin."""
TRAINED = "max by (instance, hardware) (gaudi_training_info)"
#: The time of the last checkpoint, over time.
CHECKPOINTS = "gaudi_training_checkpoint_last_timestamp_seconds{$node}"
#: Moments before which the processes of a job began again.
RESTARTS = "resets(gaudi_training_tokens_total{$node}[$window]) > 0"


def filled(query: str, node: str = "", where: str = "", step: float = 60) -> str:
    """A query with its matchers; ``node`` and ``where`` are empty or as ``instance="gaudi-1"``."""
    found = query.replace("$node", node).replace("$where", where).replace("$window", f"{round(step) + SCRAPES}s")
    return found.replace(",}", "}").replace("{}", "")
