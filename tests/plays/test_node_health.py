"""The timer that examines a node: installed by the real role, and its program run on a simulated host."""

from __future__ import annotations

import json
import re
import subprocess
import time

from .cluster import Cluster
from .host import Host, program
from .test_health import fault

FOLDER = "/var/lib/gaudi3-scale/health"
METRICS = "/var/lib/prometheus/node-exporter/gaudi-node-health.prom"
HANGS = "/var/lib/prometheus/node-exporter/gaudi-training-hangs.prom"
PROGRAM = "/usr/local/lib/gaudi-node-health/gaudi_node_health.py"


def examine(host: Host, timeout: int = 30) -> dict[str, float]:
    """Run what the timer runs; the metrics that it wrote."""
    unit = host.path("/etc/systemd/system/gaudi-node-health.service").read_text()
    (command,) = re.findall(r"ExecStart=/usr/bin/python3 -s \S+ ((?:.|\\\n)*?)$", unit.replace("\\\n", ""), re.M)
    arguments = re.sub(r"--timeout \d+", f"--timeout {timeout}", command).split()
    done = subprocess.run(
        [host.interpreter, host.path(PROGRAM), *arguments], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in host.path(METRICS).read_text().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def happened(host: Host) -> list[tuple[str, str]]:
    path = host.path(f"{FOLDER}/history.jsonl")
    lines = path.read_text().splitlines() if path.exists() else []
    return [(entry["what"], entry["reason"].split(" (")[0]) for entry in map(json.loads, lines)]


def test_the_timer_keeps_a_history_and_metrics_and_a_hung_tool_costs_its_time_limit(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    for name, module in (("dmesg", "dmesg"), ("modinfo", "kmod_tools")):
        program(host, name, module, "main" if name == "dmesg" else "modinfo")
    host.path(METRICS).parent.mkdir(parents=True)
    role = cluster.role("node_health", node_health_expected_cards=1)
    assert role.returncode == 0, role.messages()
    assert (
        "systemctl restart gaudi-node-health.timer" in host.calls
        or "systemctl start gaudi-node-health.timer" in host.calls
    )
    again = cluster.role("node_health", node_health_expected_cards=1)
    assert (again.returncode, again.changed()) == (0, set()), again.messages()

    drop_in = "/etc/systemd/system/gaudi-train-.service.d/gaudi-node-health.conf"
    assert host.path(drop_in).read_text().endswith("[Unit]\nOnFailure=gaudi-node-health.service\n")

    sound = examine(host)
    assert host.path(HANGS).read_text().endswith("# TYPE gaudi_training_hang_timestamp_seconds gauge\n")
    assert (sound["gaudi_health_drains"], sound["gaudi_health_check_errors"]) == (0, 0)
    assert sound["gaudi_health_examination_cpu_seconds"] <= 0.5
    assert happened(host) == []
    fault(host, "needs-reset", "--card", "0")
    sick = examine(host)
    assert sick["gaudi_health_drains"] == 1
    assert sick['gaudi_health_verdicts{kind="node fault",severity="critical"}'] == 1
    said = "accel0: the driver says 'Needs reset' of accel0"
    assert happened(host) == [("verdict", said)]
    fault(host, "needs-reset", "--card", "0", "--clear")
    fault(host, "hl-smi-hang")
    began = time.monotonic()
    unread = examine(host, timeout=2)
    assert time.monotonic() - began < 30
    assert (unread["gaudi_health_drains"], unread["gaudi_health_check_errors"]) == (0, 1)
    assert happened(host) == [("verdict", said)], "a reading that failed does not say that a fault is over"
    fault(host, "hl-smi-hang", "--clear")
    examine(host)
    assert happened(host) == [("verdict", said), ("verdict is over", said)]
