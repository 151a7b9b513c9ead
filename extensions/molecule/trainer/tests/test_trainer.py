"""What the role trainer leaves on a node, and that a job which is killed goes on where it was."""

from __future__ import annotations

import json
import time
from typing import Any

testinfra_hosts = ["ansible://gaudi"]

JOB = "/var/lib/gaudi3-scale/jobs/tiny"
CONTROL = "/var/lib/gaudi3-scale/jobs/.control/tiny"
UNIT = "gaudi-train-tiny"


def status(host: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(host.file(f"{JOB}/status.json").content_string)
    return value


def test_the_job_is_finished_and_learnt_something(host: Any) -> None:
    now = status(host)
    assert (now["state"], now["step"], now["max_steps"]) == ("finished", 12, 12)
    assert (now["world_size"], now["device"]) == (2, "cpu")
    assert now["loss"] < now["first_loss"]
    assert now["tokens"] == 12 * 2 * 8 * 64


def test_its_unit_is_done_and_not_started_at_boot(host: Any) -> None:
    service = host.service(UNIT)
    assert service.is_valid and not service.is_running
    properties = service.systemd_properties
    assert properties["UnitFileState"] == "static"
    assert properties["User"] == "gaudi3-scale"
    assert properties["Restart"] == "no"
    assert properties["KillMode"] == "mixed"
    assert properties["Result"] == "success"
    assert "--nnodes=1 --nproc-per-node=2 --rdzv-backend=c10d" in properties["ExecStart"]
    assert f"gaudi3-train fit --config {CONTROL}/config.yml" in properties["ExecStart"]


def test_checkpoints_belong_to_the_jobs_user(host: Any) -> None:
    newest = host.file(status(host)["checkpoint"])
    assert newest.exists and newest.path.startswith(f"{JOB}/checkpoints/")
    assert (newest.user, host.file(JOB).mode) == ("gaudi3-scale", 0o750)
    config = host.file(f"{CONTROL}/config.yml")
    assert (config.user, config.group, config.mode) == ("root", "gaudi3-scale", 0o640)


def test_the_job_is_known_by_its_specification(host: Any) -> None:
    record = json.loads(host.file(f"{CONTROL}/job.json").content_string)
    assert len(record["spec_sha256"]) == 64
    assert record["specification"]["processes_per_node"] == 2
    assert f"--rdzv-id=tiny-{record['spec_sha256'][:8]}" in host.service(UNIT).systemd_properties["ExecStart"]


def test_pytorch_is_the_vendors_and_not_the_systems(host: Any) -> None:
    """Nothing but the role brought it, and the jobs' user can have it."""
    assert host.run("/usr/bin/python3 -c 'import torch'").rc != 0
    code = "import torch, habana_frameworks.torch"
    assert host.run(f"runuser -u gaudi3-scale -- /opt/gaudi3-scale/torch/bin/python -c '{code}'").rc == 0
    record = json.loads(host.file("/opt/gaudi3-scale/torch/gaudi3-scale-pytorch.json").content_string)
    assert (record["release"], record["kind"], len(record["sha256"])) == ("1.23.0-695", "fork", 64)
    assert host.file("/opt/gaudi3-scale/torch").linked_to == "/opt/gaudi3-scale/torch-1.23.0-695"


def test_the_jobs_user_cannot_log_in_or_change_the_trainer(host: Any) -> None:
    user = host.user("gaudi3-scale")
    assert user.shell == "/usr/sbin/nologin"
    assert host.run("runuser -u gaudi3-scale -- touch /opt/gaudi3-scale/venv/bin/gaudi3-train").rc != 0
    assert host.run("runuser -u gaudi3-scale -- /opt/gaudi3-scale/venv/bin/gaudi3-train --version").rc == 0


def test_a_killed_job_resumes_from_its_checkpoint(host: Any) -> None:
    ansible = {
        "name": "killed",
        "state": "started",
        "nodes": ["gaudi-1"],
        "head_address": "127.0.0.1",
        "processes_per_node": 2,
        "config": {
            "device": "cpu",
            "model": {
                "hidden_size": 32,
                "layers": 1,
                "heads": 2,
                "kv_heads": 1,
                "intermediate_size": 64,
                "sequence_length": 64,
            },
            "train": {"mode": "eager", "max_steps": 100000, "log_every": 1},
            "checkpoint": {"every": 5},
            "metrics": {"enabled": False},
        },
    }
    folder = "/var/lib/gaudi3-scale/jobs/killed"

    def train(**options: Any) -> dict[str, Any]:
        result: dict[str, Any] = host.ansible(
            "gaudi3.scale.gaudi_train", json.dumps({**ansible, **options}), check=False, become=False
        )
        return result

    def step(key: str = "step") -> int:
        text = host.run(f"cat {folder}/status.json").stdout
        return int((json.loads(text) if text else {}).get(key) or 0)

    def until(condition: Any) -> None:
        deadline = time.monotonic() + 120
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.5)
        assert condition()

    try:
        assert train()["changed"] is True
        until(lambda: step() > 7)
        assert host.run("pkill -9 gaudi3-train").rc == 0
        until(lambda: not host.service("gaudi-train-killed").is_running)
        reached = step("checkpoint_step")
        assert train()["changed"] is True
        until(lambda: step("resumed_from_step") >= reached)
        other = train(max_restarts=3)
        assert other["changed"] is False
        assert other["msg"].startswith("Job killed is already running on this node under another specification")
        assert train(state="stopped")["changed"] is True
        assert not host.service("gaudi-train-killed").is_running
    finally:
        train(state="absent", purge=True)
    assert not host.file(folder).exists
