"""A user's own script as a job: a killed process, a stop and a node that is switched off and on, and it goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import JOBS, ROOT, Site, keep_job, run, went_on

JOB = "own"
STEPS = 600
SETTINGS = {
    "trainer_job_name": JOB,
    "trainer_command": ["train.py", "--steps", str(STEPS), "--save-every", "20"],
    "trainer_chdir": "/srv/own_script",
    "trainer_config": {},
    "trainer_cards": 2,
    "trainer_processes_per_node": 1,
    "trainer_max_restarts": 3,
    "trainer_start_at_boot": True,
}
NODES = ("gaudi-1", "gaudi-2")


@pytest.fixture(scope="module")
def settings(trained: Site) -> dict[str, Any]:
    """Variables of the job, and the example on the nodes."""
    trained.copy(ROOT / "examples/own_script")
    return {**SETTINGS, **trained.pace(0.15)}


@JOBS.sampled("a user's script")
def test_a_users_script_survives_a_kill_a_stop_and_a_lost_node(trained: Site, settings: dict[str, Any]) -> None:
    def play(state: str, tags: str) -> None:
        result = trained.play("--tags", tags, "-e", json.dumps({**settings, "trainer_state": state}))
        assert result.returncode == 0, result.messages() or result.output

    play("started", "preflight,drivers,train")
    seen = went_on(trained, JOB, after=0)
    assert (seen["device"], seen["world_size"], seen["resumed_from_step"]) == ("hpu", 2, None)

    # The newest process that runs the script is torchrun's worker; the brackets keep the pattern from finding itself.
    killed = trained.ssh("gaudi-2", "pkill --newest --signal KILL --full 'own_script/train[.]py'")
    assert killed.returncode == 0, killed.stdout
    seen = went_on(trained, JOB, after=seen["checkpoint_step"])

    play("stopped", "train")
    stopped = trained.status("gaudi-1", JOB)
    assert stopped["state"] == "interrupted" and stopped["step"] == stopped["checkpoint_step"] < STEPS, stopped
    settings["trainer_resume_stopped"] = True
    play("started", "train")
    seen = went_on(trained, JOB, after=stopped["step"])
    assert seen["resumed_from_step"] == stopped["step"]

    assert run("gaudi3-simulator", "off", "--name", trained.name, "gaudi-2").returncode == 0
    trained.restart("gaudi-2")
    seen = went_on(trained, JOB, after=seen["checkpoint_step"])
    assert seen["world_size"] == 2, "the node that was booted joins by itself"
    play("finished", "preflight,drivers,train")
    for node in NODES:
        ended = trained.status(node, JOB)
        assert (ended["state"], ended["step"], ended["world_size"]) == ("finished", STEPS, 2), ended
    assert trained.status("gaudi-1", JOB)["resumed_from_step"] >= stopped["step"]
    play("absent", "train")
    for node in NODES:
        # A healing would read there that gaudi-2 fell silent, and suspect it.
        assert trained.ssh(node, f"rm -r /var/lib/gaudi3-scale/jobs/{JOB}").returncode == 0
    keep_job("a user's script", "a process is killed, a person stops it, a node is switched off and on", STEPS)
