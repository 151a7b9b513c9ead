"""What is done to a site that is in order: a part of it again, and a failure in it.

The tests build on each other, in the order of this file, on one cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import SMALL, Site, reached, refused, wait_for

#: PyTorch starts for seconds in each process, and these tests are about starts.
ONE_PROCESS = {"trainer_processes_per_node": 1}


def test_tags_limit_and_start_at_task(trained: Site) -> None:
    tuned = trained.play("--tags", "tuning", "--limit", "gaudi-2")
    assert tuned.returncode == 0, tuned.messages()
    assert {host for host, _name, _result in tuned.results()} == {"gaudi-2"}
    names = {name for _host, name, _result in tuned.results()}
    assert any("huge pages" in name.lower() or "kernel settings" in name.lower() for name in names), names
    assert not any("prometheus" in name.lower() for name in names)
    late = trained.play("--start-at-task", "Read the cards back")
    assert late.returncode == 0, late.messages()
    assert {name for _host, name, _result in late.results()} <= {
        "Gathering Facts", "Read the cards back", "Read the training jobs back", "Look at what the node offers the job",
        "Leave out nodes that are as the preflight found them",
        "Sum up", "Require that the job trained on the cards", "Require that the job's user can open the cards",
    }  # fmt: skip


def test_the_examination_changes_nothing_and_names_nobody(trained: Site, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    options = {"doctor_quick": True, "doctor_directory": str(reports)}
    examined = trained.play("-e", json.dumps(options), playbook="playbooks/doctor.yml")
    assert examined.returncode == 0, examined.messages()
    assert {name for _host, name in examined.changed()} == {"Make the folder of the reports", "Write the report"}
    for node in ("gaudi-1", "gaudi-2"):
        text = (reports / f"{node}.json").read_text()
        report = json.loads(text)
        assert report["simulated"] and not re.search(r"\bgaudi-[12]\b", text)
        states = {key: section["state"] for key, section in report["sections"].items()}
        assert "failed" not in states.values(), states
        assert len(report["sections"]["cards"]["data"]["cards"]) == 8
        assert report["sections"]["python"]["data"]["versions"]["gaudi3-scale"]


def test_killed_on_one_node_it_resumes_from_its_checkpoint(trained: Site) -> None:
    config = {
        "model": SMALL,
        "train": {"mode": "eager", "max_steps": 150, "log_every": 5, "threads": 1},
        "checkpoint": {"every": 10},
    }
    given = {"trainer_job_name": "killed", "trainer_config": config, **ONE_PROCESS}
    job = ("-e", json.dumps({**given, **trained.pace(0.2)}))
    started = trained.play("--tags", "train", "-e", "trainer_state=started", *job)
    assert started.returncode == 0, started.messages()
    wait_for(lambda: (trained.status("gaudi-2", "killed").get("checkpoint_step") or 0) >= 20, "a checkpoint at step 20")
    assert trained.ssh("gaudi-2", "pkill -9 -x gaudi3-train").returncode == 0
    unit = "systemctl is-active gaudi-train-killed.service"
    wait_for(lambda: "failed" in trained.ssh("gaudi-1", unit).stdout, "the unit of gaudi-1 to fail")
    wait_for(lambda: "failed" in trained.ssh("gaudi-2", unit).stdout, "the unit of gaudi-2 to fail")
    again = trained.play(*job)
    assert again.returncode == 0, again.messages()
    for node in ("gaudi-1", "gaudi-2"):
        status = trained.status(node, "killed")
        assert (status["state"], status["step"]) == ("finished", 150)
        assert status["resumed_from_step"] >= 20
    # One line per logged step, as if nothing had happened.
    log = trained.ssh("gaudi-1", "cat /var/lib/gaudi3-scale/jobs/killed/metrics.jsonl").stdout
    steps = [json.loads(line)["step"] for line in log.splitlines() if line.startswith("{")]
    assert steps == sorted(set(steps))
    assert steps[-1] == 150


@pytest.fixture
def garbage(trained: Site) -> Iterator[None]:
    trained.fault("gaudi-1", "hl-smi-garbage")
    yield
    trained.fault("gaudi-1", "hl-smi-garbage", "--clear")


def test_hl_smi_printing_garbage(trained: Site, garbage: None) -> None:
    refused(trained, "hl-smi", "--tags", "verify")


def test_a_job_under_another_specification_has_to_be_stopped_and_then_goes_on(trained: Site) -> None:
    pace = trained.pace(0.5)

    def job(steps: int, state: str, **more: Any) -> tuple[str, ...]:
        config = {"model": SMALL, "train": {"mode": "eager", "max_steps": steps, "threads": 1}}
        given = {"trainer_state": state, "trainer_job_name": "long", "trainer_config": config, **ONE_PROCESS}
        return ("--tags", "train", "-e", json.dumps({**given, **pace, **more}))

    def play(state: str, **more: Any) -> dict[str, Any]:
        result = trained.play(*job(100000, state, **more))
        assert result.returncode == 0, result.messages()
        return trained.status("gaudi-1", "long")

    play("started")
    sentence = "Job long is already running on this node under another specification"
    refused(trained, sentence, *job(99, "started"))
    reached(trained, "long", lambda status: bool(status.get("step")), "the first step")
    left = play("stopped")
    assert left["state"] == "interrupted" and "SIGTERM" in left["interruption"], left
    play("started", trainer_resume_stopped=True)
    again = reached(trained, "long", lambda status: (status.get("step") or 0) > left["step"], "a further step")
    assert again["resumed_from_step"] == left["step"]
    play("stopped")
