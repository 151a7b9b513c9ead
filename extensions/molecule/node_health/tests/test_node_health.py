"""What the role node_health leaves on a node: a timer, and an examination that finds what is wrong with a card."""

from __future__ import annotations

import json
from typing import Any

testinfra_hosts = ["ansible://gaudi"]

TIMER, EXAMINATION = "gaudi-node-health.timer", "gaudi-node-health.service"
METRICS = "/var/lib/prometheus/node-exporter/gaudi-node-health.prom"
HISTORY = "/var/lib/gaudi3-scale/health/history.jsonl"


def examined(host: Any) -> dict[str, float]:
    """The metrics of an examination now."""
    done = host.run(f"systemctl start {EXAMINATION}")
    assert done.rc == 0, host.run(f"journalctl --unit {EXAMINATION} --no-pager").stdout
    lines = [line for line in host.file(METRICS).content_string.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_the_timer_runs_now_and_at_boot(host: Any) -> None:
    assert host.service(TIMER).is_enabled and host.service(TIMER).is_running


def test_a_sound_node_is_fit_and_a_faulty_one_is_not(host: Any) -> None:
    sound = examined(host)
    assert sound["gaudi_health_drains"] == 0, sound
    assert host.run("gaudi3-simulator-node fault needs-reset --card 0").rc == 0
    try:
        assert examined(host)["gaudi_health_drains"] == 1
    finally:
        assert host.run("gaudi3-simulator-node fault needs-reset --card 0 --clear").rc == 0
    assert examined(host)["gaudi_health_drains"] == 0
    entries = [json.loads(line) for line in host.file(HISTORY).content_string.splitlines()]
    what = [entry["what"] for entry in entries if "accel0" in entry["reason"]]
    assert what[-2:] == ["verdict", "verdict is over"], entries
