"""The first node of a job breaks, is healed, and the job goes on from its checkpoint without a person."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import JOBS, SMALL, Site, keep_job, reached, wait_for, went_on

JOB = "healed"
STEPS = 160
NODES = ("gaudi-1", "gaudi-2")


@JOBS.sampled("a job whose first node is healed")
def test_a_job_goes_on_once_its_first_node_is_healed(trained: Site, tmp_path: Path) -> None:
    config = {
        "model": SMALL,
        "train": {"mode": "eager", "max_steps": STEPS, "log_every": 10, "threads": 1, "collective_timeout": 30},
        "checkpoint": {"every": 10},
    }
    job = {"trainer_job_name": JOB, "trainer_config": config, "trainer_processes_per_node": 1, **trained.pace(0.3)}
    started = trained.play("--tags", "train", "-e", json.dumps({**job, "trainer_state": "started"}))
    assert started.returncode == 0, started.messages()
    before = went_on(trained, JOB, after=0)
    trained.fault("gaudi-1", "needs-reset", "--card", "5")
    given = ("-e", json.dumps({"health_mode": "enforce", "health_directory": str(tmp_path)}))
    healed = trained.play("--limit", ",".join(NODES), *given, playbook="gaudi3.scale.heal")
    assert healed.returncode == 0, healed.messages() or healed.output
    record = json.loads((tmp_path / "fleet.json").read_text())["record"]
    assert [(entry["node"], entry["do"]) for entry in record] == [
        ("gaudi-1", "reset"), ("gaudi-1", "test"), ("gaudi-1", "return"),
    ]  # fmt: skip
    assert ("gaudi-2", "Start again what ended with a node that is back") in healed.changed()
    # What the first node had saved when it was told to leave, and not a step of it is lost.
    again = reached(trained, JOB, lambda status: bool(status.get("resumed_from_step")), "the job to go on")
    assert again["resumed_from_step"] >= before["checkpoint_step"]

    def finished() -> bool:
        return all(trained.status(node, JOB).get("state") == "finished" for node in NODES)

    wait_for(finished, "the job's end")
    assert {node: trained.status(node, JOB)["step"] for node in NODES} == dict.fromkeys(NODES, STEPS)
    log = trained.ssh("gaudi-1", f"cat /var/lib/gaudi3-scale/jobs/{JOB}/metrics.jsonl").stdout
    steps = [json.loads(line)["step"] for line in log.splitlines() if line.startswith("{")]
    assert steps == [1, *range(10, STEPS + 1, 10)]
    keep_job("a job whose first node is healed", "its first node is taken out, reset and given back", STEPS)
