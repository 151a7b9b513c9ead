"""A sharded job on simulated cards: one node is switched off halfway, and the spare one finishes the job."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from .conftest import JOBS, SMALL, Site, keep_job, run

JOB = "spare"
STEPS = 400
CONFIG = {
    "device": "hpu",
    "model": SMALL,
    "train": {
        "mode": "eager",
        "strategy": "habana_fsdp",
        "max_steps": STEPS,
        "log_every": 10,
        "collective_timeout": 60,
        "threads": 1,
    },
    "checkpoint": {"every": 40},
    "data": {"validation_samples": 16},
}
SETTINGS = {
    "trainer_job_name": JOB,
    "trainer_config": CONFIG,
    "trainer_processes_per_node": 1,
    "trainer_spares": 1,
    "trainer_max_restarts": 3,
}


@pytest.fixture(scope="module")
def cluster(trained: Site) -> Site:
    """Three Gaudi nodes, of which one waits; the third is bare."""
    trained.up(3)
    return trained


@JOBS.sampled("a job with a spare node")
def test_the_spare_node_finishes_what_a_lost_one_began(cluster: Site) -> None:
    job = ("-e", json.dumps({**SETTINGS, **cluster.pace(0.1)}))
    started = cluster.play("--skip-tags", "monitoring,verify", "-e", "trainer_state=started", *job)
    assert started.returncode == 0, started.messages() or started.output
    nodes = ["gaudi-1", "gaudi-2", "gaudi-3"]
    working: list[str] = []
    deadline = time.monotonic() + 300
    while len(working) < 2:
        assert time.monotonic() < deadline, {node: cluster.status(node, JOB) for node in nodes}
        time.sleep(3)
        working = [node for node in nodes if _saved(cluster.status(node, JOB)) >= 40]
    spare = next(node for node in nodes if node not in working)
    # Whoever comes last waits, be it the head; its launcher holds the rendezvous, so it is not the one to be lost.
    lost = next(node for node in working if node != "gaudi-1")
    stays = next(node for node in working if node != lost)
    before = cluster.status(stays, JOB)
    assert (before["device"], before["world_size"]) == ("hpu", 2)

    assert run("gaudi3-simulator", "off", "--name", cluster.name, lost).returncode == 0

    status: dict[str, Any] = {}
    deadline = time.monotonic() + 400
    while status.get("state") != "finished":
        assert time.monotonic() < deadline, {node: cluster.status(node, JOB) for node in nodes if node != lost}
        time.sleep(3)
        status = cluster.status(spare, JOB)
    assert (status["step"], status["world_size"]) == (STEPS, 2)
    assert status["resumed_from_step"] >= 40  # the spare had nothing: it was given the shards of the lost node
    log = cluster.ssh(stays, f"cat /var/lib/gaudi3-scale/jobs/{JOB}/metrics.jsonl").stdout
    steps = [json.loads(line)["step"] for line in log.splitlines() if line.startswith("{")]
    assert steps == [1, *range(10, STEPS + 1, 10)]
    keep_job("a job with a spare node", "a node is switched off, and the spare one takes its place", STEPS)


def _saved(status: dict[str, Any]) -> int:
    return int(status.get("checkpoint_step") or 0)
