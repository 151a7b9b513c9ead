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

from .conftest import JOBS, SMALL, Site, keep_job, reached, refused, wait_for

#: PyTorch starts for seconds in each process, and these tests are about starts.
ONE_PROCESS = {"trainer_processes_per_node": 1}
#: What the first host of a run does once for all of them.
ONCE = {
    "gaudi3.scale.firewall : Look up the addresses of all hosts once",
    "gaudi3.scale.trainer : Build the trainer on the controller",
}
#: Of half a second: two minutes, within which the job is refused and stopped, and later killed.
STEPS = 240


def test_tags_limit_and_start_at_task(trained: Site) -> None:
    tuned = trained.play("--tags", "tuning", "--limit", "gaudi-2")
    assert tuned.returncode == 0, tuned.messages()
    assert {host for host, _name, _result in tuned.results()} == {"gaudi-2"}
    names = {name for _host, name, _result in tuned.results()}
    # It is as it is to be, so that the phase is asked and has nothing to do.
    assert names == {"Ask every host what the phases would change there", "Decide what is done on each host", *ONCE}, (
        names
    )
    assert not any("prometheus" in name.lower() for name in names)
    late = trained.play("--start-at-task", "Read the cards back")
    assert late.returncode == 0, late.messages()
    assert {name for _host, name, _result in late.results()} <= {
        "Gathering Facts", "Read the cards back", "Read the training jobs back", "Look at what the node offers the job",
        "Leave out nodes that the preflight or the job itself has asked the same",
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


def long_job(site: Site, steps: int, state: str, **more: Any) -> tuple[str, ...]:
    """Arguments for a job of so many steps, at a pace at which it can be met."""
    config = {
        "model": SMALL,
        "train": {"mode": "eager", "max_steps": steps, "log_every": 5, "threads": 1},
        "checkpoint": {"every": 10},
    }
    given = {"trainer_state": state, "trainer_job_name": "long", "trainer_config": config, **ONE_PROCESS}
    return ("-e", json.dumps({**given, **site.pace(0.5), **more}))


@JOBS.sampled("the inventory's job")
def test_a_job_under_another_specification_has_to_be_stopped_and_then_goes_on(trained: Site) -> None:
    def play(state: str, **more: Any) -> dict[str, Any]:
        result = trained.play("--tags", "train", *long_job(trained, STEPS, state, **more))
        assert result.returncode == 0, result.messages()
        return trained.status("gaudi-1", "long")

    play("started")
    sentence = "Job long is already running on this node under another specification"
    refused(trained, sentence, "--tags", "train", *long_job(trained, 99, "started"))
    reached(trained, "long", lambda status: bool(status.get("step")), "the first step")
    left = play("stopped")
    assert left["state"] == "interrupted" and "SIGTERM" in left["interruption"], left
    play("started", trainer_resume_stopped=True)
    again = reached(trained, "long", lambda status: (status.get("step") or 0) > left["step"], "a further step")
    assert again["resumed_from_step"] == left["step"]


@JOBS.sampled("the inventory's job")
def test_killed_on_one_node_it_resumes_from_its_checkpoint(trained: Site) -> None:
    """The job that the test before has left running."""
    saved = trained.status("gaudi-1", "long")["resumed_from_step"] + 20
    wait_for(
        lambda: (trained.status("gaudi-2", "long").get("checkpoint_step") or 0) >= saved, "20 steps and a checkpoint"
    )
    assert trained.ssh("gaudi-2", "pkill -9 -x gaudi3-train").returncode == 0
    unit = "systemctl is-active gaudi-train-long.service"
    wait_for(lambda: "failed" in trained.ssh("gaudi-1", unit).stdout, "the unit of gaudi-1 to fail")
    wait_for(lambda: "failed" in trained.ssh("gaudi-2", unit).stdout, "the unit of gaudi-2 to fail")
    again = trained.play(*long_job(trained, STEPS, "finished"))
    assert again.returncode == 0, again.messages()
    for node in ("gaudi-1", "gaudi-2"):
        status = trained.status(node, "long")
        assert (status["state"], status["step"]) == ("finished", STEPS)
        assert status["resumed_from_step"] >= saved
    # One line per logged step, as if nothing had happened.
    log = trained.ssh("gaudi-1", "cat /var/lib/gaudi3-scale/jobs/long/metrics.jsonl").stdout
    logged = [json.loads(line)["step"] for line in log.splitlines() if line.startswith("{")]
    assert logged == sorted(set(logged))
    assert logged[-1] == STEPS
    keep_job("the inventory's job", "a person stops it, a process is killed on one node, site.yml runs again", STEPS)


@pytest.fixture
def garbage(trained: Site) -> Iterator[None]:
    trained.fault("gaudi-1", "hl-smi-garbage")
    yield
    trained.fault("gaudi-1", "hl-smi-garbage", "--clear")


def test_hl_smi_printing_garbage(trained: Site, garbage: None) -> None:
    refused(trained, "hl-smi", "--tags", "verify")
