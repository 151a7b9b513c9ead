"""A made cluster, as its Prometheus would have it: two nodes that train, one of them with faults, for some hours."""

from __future__ import annotations

import math
from collections.abc import Iterator

NOW = 1_700_000_000
STEP = 60
HOURS = 2
NODES = ("gaudi-1", "gaudi-2")
PARTS = ("compute", "data_wait", "checkpoint_stall", "evaluation", "startup", "restart_loss", "other")
HOSTILE = "<img src=x onerror=hacked=1>"
HANG = {
    "name": "gaudi-train-demo.service",
    "state": "failed",
    "kind": "late",
    "certain": "yes",
    "sentence": f"Rank 9 on gaudi-2 did not enter all_reduce 4711 of shape {HOSTILE}; the other 15 ranks wait.",
}


def labels(**given: object) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in given.items()) + "}"


def samples(at: float) -> Iterator[tuple[str, str, float]]:
    """(metric, labels, value) of one moment; ``at`` runs from 0 to 1."""
    for node in NODES:
        trains = {"job": "training", "instance": node}
        for job in ("node", "hpu", "training"):
            yield "up", labels(job=job, instance=node), 1
        yield "gaudi_training_info", labels(**trains, device="hpu", hardware="simulated hpu", version="0.1.0"), 1
        for name, value in {
            "step": round(5000 * at),
            "max_steps": 8000,
            "loss": 2 + 8 * math.exp(-5 * at),
            "validation_loss": 2.2 + 8 * math.exp(-5 * at),
            "baseline_loss": 4.0,
            "world_size": 16,
            "gradient_norm": 1 + math.sin(30 * at) / 4,
            "skipped_steps_total": 0,
            "checkpoint_last_timestamp_seconds": NOW - 1800 * (4 - int(4 * at)),
            "tokens_total": 1e6 * at if at < 0.5 else 1e6 * (at - 0.5),
            "step_seconds_sum": 7000 * at,
            "step_seconds_count": 5000 * at,
        }.items():
            yield f"gaudi_training_{name}", labels(**trains), value
        yield "gaudi_training_tokens_per_second", labels(**trains, window="wall"), 52000 + 2000 * math.sin(40 * at)
        for number, part in enumerate(PARTS):
            yield (
                "gaudi_training_goodput_seconds_total",
                labels(**trains, part=part),
                7200 * at * (0.7 if not number else 0.05),
            )
        hpu = {"job": "hpu", "instance": node}
        for card in range(8):
            mine = {**hpu, "id": card, "device": f"accel{card}"}
            yield "habanalabs_temperature_onchip", labels(**mine), 60 + card + 5 * math.sin(20 * at + card)
            yield "habanalabs_power_mW", labels(**mine), 500_000 + 20_000 * card
            yield "habanalabs_utilization", labels(**mine), 90 + card
            yield "habanalabs_memory_used_bytes", labels(**mine), 64e9
            yield "habanalabs_memory_total_bytes", labels(**mine), 128e9
            bad = node == "gaudi-2" and card == 3
            yield "gaudi_card_ecc_errors_total", labels(**mine, kind="uncorrected", span="volatile"), 2 if bad else 0
            for port in range(3):
                yield (
                    "habanalabs_nic_port_status",
                    labels(**mine, port=port, port_type="external"),
                    0 if bad and port == 1 and at > 0.8 else 1,
                )
        health = {"job": "node", "instance": node}
        sick = node == "gaudi-2"
        yield "gaudi_health_drains", labels(**health), int(sick)
        yield "gaudi_health_out_of_service", labels(**health), int(sick)
        yield "gaudi_health_check_errors", labels(**health), 0
        if sick:
            yield "gaudi_training_hang_timestamp_seconds", labels(**health, **HANG), NOW - 500
        yield "gaudi_health_examination_timestamp_seconds", labels(**health), NOW - 100
        yield "gaudi_health_verdicts", labels(**health, kind="node fault", severity="error"), int(sick)
    money = labels(job="training", instance="gaudi-1", currency="EUR")
    for name, value in {
        "spent": 300 * at,
        "budget": 320,
        "budget_left": 320 - 300 * at,
        "price_per_hour": 150,
        "per_million_tokens": 0.4,
    }.items():
        yield f"gaudi_cost_{name}", money, value
    yield (
        "gaudi_cost_info",
        labels(
            job="training",
            instance="gaudi-1",
            currency="EUR",
            team=HOSTILE,
            project="demo",
            price_source="a contract",
            price_date="2026-11-01",
        ),
        1,
    )


def openmetrics() -> str:
    """All of it, as promtool makes blocks of it."""
    series: dict[str, list[str]] = {}
    count = HOURS * 3600 // STEP
    for number in range(count + 1):
        time = NOW - (count - number) * STEP
        for name, given, value in samples(number / count):
            series.setdefault(name, []).append(f"{name}{given} {value} {time}")
    lines = [line for name, each in series.items() for line in (f"# TYPE {name} unknown", *each)]
    return "\n".join([*lines, "# EOF"]) + "\n"
