"""A user's own script as a job: a killed process, a stop and a lost node, and the job goes on and finishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .conftest import ROOT, Site, reached, run

JOB = "own"
STEPS = 2000
# The example with steps of 20 ms or more, so that there is time to disturb it on a machine of any speed.
PACED = """
import runpy, time
import lightning.pytorch as pl

step = pl.LightningModule.optimizer_step
pl.LightningModule.optimizer_step = lambda *given, **named: (time.sleep(0.02), step(*given, **named))[1]
runpy.run_path("train.py", run_name="__main__")
"""
SETTINGS = {
    "trainer_job_name": JOB,
    "trainer_command": ["paced.py", "--steps", str(STEPS), "--save-every", "50"],
    "trainer_chdir": "/srv/own_script",
    "trainer_config": {},
    "trainer_cards": 2,
    "trainer_processes_per_node": 1,
    "trainer_max_restarts": 3,
}
NODES = ("gaudi-1", "gaudi-2")


def test_a_users_script_survives_a_kill_a_stop_and_a_lost_node(trained: Site, tmp_path: Path) -> None:
    (tmp_path / "paced.py").write_text(PACED)
    for source, target in ((ROOT / "examples/own_script", ""), (tmp_path / "paced.py", "own_script/")):
        copied = run(
            "ansible", "gaudi", "-m", "ansible.builtin.copy", "-a", f"src={source} dest=/srv/{target} mode=a+rX",
            GAUDI3_SIMULATOR_CLUSTER=trained.name,
        )  # fmt: skip
        assert copied.returncode == 0, copied.stdout
    play(trained, "started", "preflight,drivers,train")
    seen = went_on(trained, after=0)
    assert (seen["device"], seen["world_size"], seen["resumed_from_step"]) == ("hpu", 2, None)

    # The newest process that runs the script is torchrun's worker; the brackets keep the pattern from finding itself.
    killed = trained.ssh("gaudi-2", "pkill --newest --signal KILL --full 'own_script/paced[.]py'")
    assert killed.returncode == 0, killed.stdout
    seen = went_on(trained, after=seen["checkpoint_step"])

    play(trained, "stopped", "train")
    stopped = trained.status("gaudi-1", JOB)
    assert stopped["state"] == "interrupted" and stopped["step"] == stopped["checkpoint_step"] < STEPS, stopped
    play(trained, "started", "train")
    seen = went_on(trained, after=stopped["step"])
    assert seen["resumed_from_step"] == stopped["step"]

    assert run("gaudi3-simulator", "off", "--name", trained.name, "gaudi-2").returncode == 0
    trained.restart("gaudi-2")
    play(trained, "finished", "preflight,drivers,train")
    for node in NODES:
        ended = trained.status(node, JOB)
        assert (ended["state"], ended["step"], ended["world_size"]) == ("finished", STEPS, 2), ended
    assert trained.status("gaudi-1", JOB)["resumed_from_step"] >= stopped["step"]


def play(site: Site, state: str, tags: str) -> None:
    """Have the job in ``state``."""
    result = site.play("--tags", tags, "-e", json.dumps({**SETTINGS, "trainer_state": state}))
    assert result.returncode == 0, result.messages() or result.output


def went_on(site: Site, after: int) -> dict[str, Any]:
    """The status on the first node once a checkpoint later than step ``after`` was written."""
    return reached(
        site,
        JOB,
        lambda status: status.get("state") == "running" and int(status.get("checkpoint_step") or 0) > after,
        f"a checkpoint after step {after}",
    )
