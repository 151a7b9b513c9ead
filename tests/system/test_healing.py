"""A node breaks and is healed by the playbook: a real reboot, out of service, given back. The other is left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ansible_run import PlaybookRun

from .conftest import Site

BROKEN, SOUND = "gaudi-2", "gaudi-1"
FENCE = "/var/lib/gaudi3-scale/health/fence.json"
FAULT = ("pcie-width", "--card", "3")


@pytest.fixture(name="cluster")
def a_cluster(trained: Site) -> Iterator[Site]:
    """The fault is gone in the end, whatever the test came to: others use these nodes."""
    yield trained
    trained.ssh(BROKEN, "gaudi3-simulator-node fault --clear-all")


def heal(cluster: Site, folder: Path, *arguments: str) -> PlaybookRun:
    given = {"health_mode": "enforce", "health_directory": str(folder)}
    run = cluster.play(
        "--limit", f"{SOUND},{BROKEN}", "-e", json.dumps(given), *arguments, playbook="gaudi3.scale.heal"
    )
    assert run.returncode == 0, run.messages() or run.output
    return run


def said(run: PlaybookRun) -> list[str]:
    lines: list[str] = run.result(SOUND, "Sum up")["msg"]
    return lines


def booted(cluster: Site, node: str) -> str:
    """When the node's first process began."""
    return cluster.ssh(node, "stat -c %Y /proc/1").stdout.strip()


def test_a_reboot_that_does_not_help_ends_out_of_service_until_a_person_gives_the_node_back(
    cluster: Site, tmp_path: Path
) -> None:
    before = {node: booted(cluster, node) for node in (SOUND, BROKEN)}
    bus_ids = cluster.ssh(BROKEN, "hl-smi -Q index,bus_id -f csv,noheader").stdout
    bus_id = dict(line.split(", ") for line in bus_ids.splitlines())["3"]
    why = f"accel3: the PCIe link of accel3 ({bus_id}) has width 8 of 16 (action: reboot), found by pcie-width"
    stays_out = f"{BROKEN} is out of service (out): {why}"
    record = f"The record is in {tmp_path}."
    cluster.fault(BROKEN, *FAULT)

    run = heal(cluster, tmp_path)
    assert said(run) == [
        f"{BROKEN}: reboot: {why}",
        f"{BROKEN}: test: reboot is done",
        f"{BROKEN}: isolate: {why}",
        f"{BROKEN}: call a person: {why}",
        stays_out,
        record,
    ]
    after = booted(cluster, BROKEN)
    assert after != before[BROKEN]
    fence = json.loads(cluster.ssh(BROKEN, f"cat {FENCE}").stdout)
    assert {name: fence[name] for name in ("by", "step", "reason", "jobs")} == {
        "by": "healing",
        "step": "isolate",
        "reason": why,
        "jobs": [],
    }

    again = heal(cluster, tmp_path)
    assert again.changed() == set()
    assert said(again) == [stays_out, record]

    cluster.fault(BROKEN, *FAULT, "--clear")
    back = heal(cluster, tmp_path, "-e", f"health_released={BROKEN}")
    assert said(back) == [
        f"{BROKEN}: test: a person released it",
        f"{BROKEN}: return: healthy again after: {why}",
        record,
    ]
    assert "No such file" in cluster.ssh(BROKEN, f"cat {FENCE}").stderr
    history = cluster.ssh(BROKEN, "cat /var/lib/gaudi3-scale/health/history.jsonl").stdout.splitlines()
    assert [(entry["what"], entry["step"]) for entry in map(json.loads, history)] == [
        ("out", "reboot"),
        ("out", "isolate"),
        ("in service", ""),
    ]
    assert booted(cluster, BROKEN) == after
    assert booted(cluster, SOUND) == before[SOUND]
    assert "No such file" in cluster.ssh(SOUND, "cat /var/lib/gaudi3-scale/health/history.jsonl").stderr
