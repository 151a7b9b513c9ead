"""A real Slurm with two nodes of eight cards, and the programs of role slurm.

Release 22.05 in the tests; `make proof-slurm` has the same cases of later releases, too.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._teams import accounting as accounts
from ansible_collections.gaudi3.scale.plugins.module_utils._teams import declared
from gaudi3_scale.cost import sacct
from tests.suite.proof import Proof

from . import accounting
from .cluster import MODULES, OTHER, OWN, PASSWORD, ROOT, SUITES, SlurmCluster, write_executable
from .machines import lacks, wait_for
from .modules import run_module

CASES = [
    "random allocations",
    "supported sets",
    "the job of sbatch and of the unit",
    "requeue",
    "cancel",
    "time limit",
    "node death",
    "drain while running",
    "controller restart",
    "fence",
    "hung check",
    "failing and lying check",
    "broken programs",
    "failing prolog of a site",
    "card held after the job",
    "accounting",
    "reconfigure",
    "teams apart",
]
RELEASES = [OWN, *SUITES]


def case_of(release: str, case: str) -> str:
    """A case of a release as the proof names it."""
    return case if release == OWN else f"{case}, {release}"


PROOF = Proof(
    "slurm",
    {release: [case_of(release, case) for case in CASES] for release in RELEASES},
    sample=set(CASES) - {"time limit"},
)
COLUMNS = ["what was seen"]
TEXT = """
Slurm 22.05.8 of Debian 12, and where a case names them 24.11.5 of Debian 13 and 26.05.5 of Debian's unstable, each with
the C library, Python and MariaDB of its Debian. A controller with slurmdbd and MariaDB, and two nodes with eight cards
each, as namespaces of one machine, with munge, device files of their own and real cgroups that keep jobs off them. The
index of a card is not its module id on one of the nodes. slurm.conf, cgroup.conf, slurmdbd.conf and the programs are
those of role slurm, and jobs those of `gaudi3-train slurm`, on processors.
"""
WHY = lacks()
PARTIAL = "--allow-partial"
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it can run")


@pytest.fixture(
    scope="module",
    params=[pytest.param(each, marks=[] if each == OWN else [pytest.mark.proof]) for each in RELEASES],
)
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmCluster]:
    folder = Path(tempfile.mkdtemp(prefix="gaudi3-slurm-"))  # pytest's own is closed to other users
    cluster = SlurmCluster(folder, PARTIAL, request.param)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def idle(slurm: SlurmCluster) -> Iterator[None]:
    """Each case begins with nodes that are idle, and ends its jobs."""
    yield
    slurm.set_options(PARTIAL)
    slurm.admin("scancel", "--user=root", check=False)
    slurm.admin("scancel", "--user=user", check=False)
    wait_for("no jobs", lambda: not slurm.admin("squeue", "-h"), 240)
    for name, state in slurm.states().items():
        if "DRAIN" in state or "DOWN" in state:
            slurm.admin("scontrol", "update", f"NodeName={name}", "State=RESUME")
    wait_for("idle nodes", lambda: set(slurm.states().values()) == {"IDLE"}, 240)


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    yield
    PROOF.write_table("Jobs and nodes of a real Slurm", TEXT, COLUMNS)


def held(slurm: SlurmCluster, case: str, seen: str) -> None:
    PROOF.note(case_of(slurm.release, case), {COLUMNS[0]: seen})


def skip_if_held(slurm: SlurmCluster, case: str) -> None:
    PROOF.skip_if_held(case_of(slurm.release, case))


TAKES_CARDS = r"""
here=$(hostname)
for card in 0 1 2 3 4 5 6 7; do
  if ! (: <"/dev/accel/accel$card") 2>&1 | grep -q "not permitted"; then mine="$mine $card"; fi
done
for card in $mine; do mkdir "held-$here-$card" || echo "$here $card is shared" >>shared; done
echo "$SLURM_JOB_ID $here $HABANA_VISIBLE_MODULES $HABANA_VISIBLE_DEVICES $mine" >>seen
sleep "$1"
for card in $mine; do rmdir "held-$here-$card"; done
"""


@PROOF.sampled("random allocations")
def test_jobs_share_no_card_and_see_their_own_modules(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "random allocations")
    draw, count = random.Random(PROOF.seed), 200 if PROOF.is_running else 24
    script = slurm.shared / "takes.sh"
    script.write_text(f"#!/bin/bash\n{TAKES_CARDS}")
    sizes = {}
    for _ in range(count):
        size = draw.randint(1, 8)
        number = slurm.run(
            "sbatch", "--parsable", "-N1", "-o", "/dev/null", f"--gres=gpu:gaudi3:{size}", str(script),
            f"{draw.uniform(0, 1):.2f}",
        )  # fmt: skip
        sizes[int(number)] = size
    wait_for("all jobs", lambda: not slurm.admin("squeue", "-h"), 240 + 10 * count)
    assert not (slurm.shared / "shared").exists(), (slurm.shared / "shared").read_text()
    lines = [line.split() for line in (slurm.shared / "seen").read_text().splitlines()]
    assert sorted(int(line[0]) for line in lines) == sorted(sizes)
    for number, node, modules, indices, *files in lines:
        found = dict(zip(map(int, modules.split(",")), map(int, indices.split(",")), strict=True))
        assert sorted(found.values()) == sorted(map(int, files)), "it sees the files of its own cards"
        assert found.items() <= MODULES[node].items()
        assert len(found) == sizes[int(number)]
    nodes = {line[1] for line in lines}
    assert nodes == set(MODULES)
    seen = f"{count} jobs of 1 to 8 cards: none shared a card, each saw its own modules and files"
    if PROOF.is_running:  # what a sample has seen is less than the proof asks for
        held(slurm, "random allocations", seen)


@PROOF.sampled("supported sets")
def test_a_job_runs_on_a_set_that_is_supported_or_waits_for_one(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "supported sets")
    slurm.set_options("")
    options = ["-N1", "-w", "n1", "-o", "out-%j"]
    says = 'echo "$HABANA_VISIBLE_MODULES"; sleep 60'
    one = slurm.submit(*options, "--gres=gpu:1", script=says)
    slurm.wait_for_state(one, "RUNNING")
    pair = slurm.submit(*options, "--gres=gpu:2", script=says)
    wait_for("the pair was sent back", lambda: slurm.job(pair).get("Restarts") == "1", 240)
    job = slurm.wait_for_state(pair, "PENDING")
    assert job["Comment"] == "gaudi3.scale: modules 1, 2 are no set that the vendor supports; it waits for another"
    ended = slurm.machines["control"].run("srun", "-N1", "-w", "n1", "--gres=gpu:2", "true", check=False)
    assert ended.returncode != 0, "a job of srun's own cannot wait in the queue"
    three = slurm.submit(*options, "--gres=gpu:3", script=says)
    job = slurm.wait_for_state(three, "CANCELLED")
    assert job["Comment"] == "gaudi3.scale: 3 cards are not supported together: ask for 1, 2, 4 or 8"
    slurm.admin("scancel", str(one))
    slurm.wait_for_state(one, "CANCELLED")
    slurm.admin("scontrol", "update", f"JobId={pair}", "StartTime=now")
    output = slurm.shared / f"out-{pair}"
    wait_for("the pair runs", lambda: output.exists() and output.read_text().startswith("0,1"), 240)
    assert slurm.job(pair)["JobState"] == "RUNNING"
    four = slurm.submit(*options, "--gres=gpu:4", script=says)
    wait_for("the four were sent back", lambda: slurm.job(four).get("Restarts") == "1", 240)
    assert not [each for each in slurm.states().values() if "DRAIN" in each], "no node is drained for it"
    held(
        slurm,
        "supported sets",
        "modules 1 and 2 sent a job of two back, which then ran on 0 and 1; three cards were refused",
    )


SMALL: dict[str, Any] = {
    "device": "cpu",
    "model": {
        "layers": 1, "hidden_size": 32, "heads": 2, "kv_heads": 1, "intermediate_size": 64, "sequence_length": 32,
    },
    "train": {"max_steps": 40, "threads": 1, "log_every": 1, "micro_batch_size": 2, "warmup_steps": 4},
    "checkpoint": {"every": 10},
    "data": {"validation_samples": 4},
    "metrics": {"enabled": False},
}  # fmt: skip
VENV = ROOT / ".venv"
PATHS = os.pathsep.join(
    str(ROOT / name / "src") for name in ("trainer", "benchmark-tool", "doctor", "migration", "watch")
)


def script_of(slurm: SlurmCluster, name: str, job: dict[str, Any], **cluster: Any) -> Path:
    """The script that `gaudi3-train slurm` writes."""
    folder = slurm.shared / name
    folder.mkdir()
    (folder / "job.yml").write_text(json.dumps(job))
    values = {
        "nodes": 1, "processes_per_node": 1, "cpu": 1, "time": "30", "stop_timeout": 120, "gres": "none",
        "folder": "/srv", "venv": str(VENV), "threads": 1, "environment": {"PYTHONPATH": PATHS},
        "options": ["--nodelist=n1"], **cluster,
    }  # fmt: skip
    (folder / "cluster.yml").write_text(json.dumps(values))
    done = subprocess.run(
        [VENV / "bin/python", "-m", "gaudi3_scale", "slurm", "job.yml", "--cluster", "cluster.yml", "--name", name,
         "--to", "."], cwd=folder, env={**os.environ, "PYTHONPATH": PATHS}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / f"{name}.sbatch"


def losses(folder: Path) -> dict[int, str]:
    """The loss of each step, as it was written; the last one of a step that was taken again."""
    found = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line, parse_float=str)
        if "loss" in row:
            found[row["step"]] = row["loss"]
    return found


def start(slurm: SlurmCluster, script: Path) -> int:
    """Submit as root, who may read this checkout."""
    shown = (
        slurm.machines["control"].run("sh", "-c", f"cd /srv/{script.stem} && sbatch --parsable {script.name}").stdout
    )
    return int(shown)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The losses of the same job by the command of a unit."""
    folder = tmp_path_factory.mktemp("unit")
    (folder / "job.yml").write_text(json.dumps({**SMALL, "output_dir": str(folder)}))
    words = ["-m", "gaudi3_scale.launch", "--nnodes=1", "--nproc-per-node=1", "--standalone", "--no-python"]
    fit = [f"{VENV}/bin/gaudi3-train", "fit", "--config", f"{folder}/job.yml"]
    environment = {**os.environ, "PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1"}
    subprocess.run([f"{VENV}/bin/python", *words, *fit], env=environment, check=True, capture_output=True, timeout=300)
    return losses(folder)


@PROOF.sampled("the job of sbatch and of the unit")
def test_a_job_that_is_requeued_has_the_losses_of_the_unit(slurm: SlurmCluster, undisturbed: dict[int, str]) -> None:
    skip_if_held(slurm, "the job of sbatch and of the unit")
    number = start(slurm, script_of(slurm, "whole", SMALL))
    slurm.wait_for_state(number, "COMPLETED", seconds=240)
    assert losses(slurm.shared / "whole") == undisturbed and len(undisturbed) == 40
    held(slurm, "the job of sbatch and of the unit", "40 losses, equal to the last digit")


LONG: dict[str, Any] = {
    **SMALL,
    "train": {**SMALL["train"], "max_steps": 100_000, "log_every": 50},
    "checkpoint": {"every": 500},
}


def checkpoints(folder: Path) -> list[int]:
    """The steps with a committed checkpoint."""
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("checkpoints/step-*"))


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


def until_trained(slurm: SlurmCluster, name: str, number: int) -> None:
    def begun() -> bool:
        state = slurm.job(number).get("JobState")
        assert state in ("PENDING", "CONFIGURING", "RUNNING"), (state, output(slurm, name, number))
        return bool(checkpoints(slurm.shared / name))

    wait_for(f"{name} has a checkpoint", begun, 240)


def output(slurm: SlurmCluster, name: str, number: int) -> str:
    path = slurm.shared / name / f"{name}-{number}.out"
    return path.read_text() if path.exists() else ""


@PROOF.sampled("requeue")
def test_a_requeued_job_saves_and_goes_on_where_it_was(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "requeue")
    number = start(slurm, script_of(slurm, "again", LONG))
    until_trained(slurm, "again", number)
    slurm.admin("scontrol", "requeue", str(number))
    slurm.wait_for_state(number, "PENDING")
    found = status(slurm.shared / "again")
    assert found["state"] == "interrupted", found
    saved = checkpoints(slurm.shared / "again")[-1]
    assert saved % 500, "saved when it was told to stop, and not in turn"
    slurm.admin("scontrol", "update", f"JobId={number}", "StartTime=now")
    resumed = f"step {saved}"
    wait_for("it resumes", lambda: resumed in output(slurm, "again", number).rpartition("interrupted; started")[2], 240)
    assert slurm.job(number)["Restarts"] == "1"
    held(
        slurm, "requeue", "a checkpoint at SIGTERM, state interrupted, resumed from that step with the same job number"
    )


@PROOF.sampled("cancel")
def test_a_cancelled_job_saves_and_does_not_come_back(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "cancel")
    number = start(slurm, script_of(slurm, "off", LONG))
    until_trained(slurm, "off", number)
    slurm.admin("scancel", str(number))
    wait_for("the job is gone", lambda: not slurm.admin("squeue", "-h"), 240)
    assert slurm.job(number)["JobState"] == "CANCELLED"
    assert status(slurm.shared / "off")["state"] == "interrupted"
    assert checkpoints(slurm.shared / "off")[-1] % 500
    time.sleep(3)
    assert (slurm.job(number)["JobState"], slurm.job(number)["Restarts"]) == ("CANCELLED", "0")
    held(slurm, "cancel", "a checkpoint at SIGTERM; the job stayed cancelled although its launcher ended with 75")


@PROOF.sampled("time limit")
def test_a_job_saves_before_its_limit_and_goes_back_into_the_queue(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "time limit")
    number = start(slurm, script_of(slurm, "limit", LONG, time="2", stop_timeout=20))
    until_trained(slurm, "limit", number)
    wait_for("it goes back", lambda: slurm.job(number).get("Restarts") == "1", 240)
    assert slurm.job(number)["JobState"] in ("PENDING", "COMPLETING")
    found = status(slurm.shared / "limit")
    assert (found["state"], checkpoints(slurm.shared / "limit")[-1] % 500 > 0) == ("interrupted", True)
    assert "SIGUSR1 was sent" in output(slurm, "limit", number)
    held(
        slurm,
        "time limit",
        "SIGUSR1, a checkpoint, exit code 75, and the script's requeue, before the limit of two minutes",
    )


@PROOF.sampled("node death")
def test_a_job_whose_node_dies_runs_on_another(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "node death")
    number = slurm.submit("-N1", "--gres=gpu:8", "--requeue", "-o", "/dev/null", script="srun sleep 300")
    node = slurm.wait_for_state(number, "RUNNING")["NodeList"]
    (other,) = set(MODULES) - {node}
    slurm.machines[node].stop()
    wait_for("the node is down", lambda: "DOWN" in slurm.states()[node], 240)
    wait_for("the job was requeued", lambda: slurm.job(number).get("Restarts") == "1", 240)
    slurm.admin("scontrol", "update", f"JobId={number}", "StartTime=now")
    wait_for("it runs elsewhere", lambda: slurm.job(number).get("NodeList") == other, 240)
    slurm.boot(node)
    wait_for("the node is back", lambda: slurm.states()[node] == "IDLE", 240)
    held(slurm, "node death", "DOWN after SlurmdTimeout, the job requeued onto the other node, the node back by itself")


@PROOF.sampled("drain while running")
def test_a_drained_node_ends_its_job_and_takes_no_other(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "drain while running")
    number = slurm.submit("-N1", "-w", "n1", "--gres=gpu:4", "-o", "/dev/null", script="srun sleep 4")
    slurm.wait_for_state(number, "RUNNING")
    slurm.admin("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=a person")
    other = slurm.submit("-N1", "-w", "n1", "--gres=gpu:1", "-o", "/dev/null", script="srun true")
    assert slurm.wait_for_state(number, "COMPLETED", "FAILED", "CANCELLED")["JobState"] == "COMPLETED"
    assert slurm.job(other)["JobState"] == "PENDING"
    assert health(slurm, "n1") == ("DRAIN", "a person"), "what a person drained is the person's"
    held(
        slurm,
        "drain while running",
        "the job ran to its end, another one waited, and the health check left the drain alone",
    )


@PROOF.sampled("controller restart")
def test_jobs_outlive_a_restart_of_the_controller(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "controller restart")
    number = slurm.submit(
        "-N1", "--gres=gpu:3", "-o", "out-%j", script='srun sh -c "sleep 6; echo $HABANA_VISIBLE_MODULES"'
    )
    slurm.wait_for_state(number, "RUNNING")
    slurm.machines["control"].end("slurmctld")
    slurm.start_controller()
    wait_for("the controller answers", lambda: slurm.states(), 240)
    other = slurm.submit("-N1", "--gres=gpu:8", "-o", "out-%j", script="srun true")
    slurm.wait_for_state(other, "COMPLETED")
    slurm.wait_for_state(number, "COMPLETED")
    assert (slurm.shared / f"out-{number}").read_text().splitlines()[-1] == "0,1,2"
    held(slurm, "controller restart", "a running job kept its cards and ended well, and new ones were started")


TRAINER = f"""#!/bin/sh
PYTHONPATH={PATHS} exec {VENV}/bin/python -m gaudi3_scale "$@"
"""
SLEEPS = """#!/bin/sh
echo '#!/bin/bash
#SBATCH --job-name=sleeps
#SBATCH --output=%x-%j.out
id -un; srun sleep 300'
"""


def launch(cluster: SlurmCluster, state: str, trainer: str = TRAINER, **options: Any) -> dict[str, Any]:
    """gaudi_train with launcher slurm on the controller."""
    programs = cluster.shared / options["name"] / "bin"
    if not programs.exists():
        programs.mkdir(parents=True)
        write_executable(programs / "gaudi3-train", trainer)
        write_executable(programs / "python", f'#!/bin/sh\nexec {VENV}/bin/python "$@"\n')
    given = {
        "state": state, "launcher": "slurm", "nodes": ["n1"], "jobs_dir": "/srv/jobs",
        "venv": f"/srv/{options['name']}", "slurm": {"time": "30", "cpu": 1, "gres": "none"}, **options,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    return run_module(cluster.machines["control"], "gaudi_train", given)


def test_the_module_submits_a_job_once_and_sees_it_finished(slurm: SlurmCluster, undisturbed: dict[int, str]) -> None:
    options = {"name": "module", "user": "root", "config": SMALL, "threads": 1, "environment": {"PYTHONPATH": PATHS}}
    first = launch(slurm, "started", **options)
    assert first.get("changed") is True, first
    number = first["job"]["slurm"]["job"]
    ended = slurm.wait_for_state(number, "COMPLETED", "FAILED", "CANCELLED")
    output = slurm.shared / f"jobs/module/module-{number}.out"
    assert ended["JobState"] == "COMPLETED", output.read_text()
    again = launch(slurm, "finished", **options)
    assert (again["changed"], again["job"]["state"], again["job"]["status"]["step"]) == (False, "finished", 40), again
    assert again["job"]["slurm"]["job"] == number
    assert losses(slurm.shared / "jobs/module") == undisturbed


def test_the_module_submits_and_cancels_a_job_of_a_user(slurm: SlurmCluster) -> None:
    options = {"name": "sleeps", "user": "user", "config": {}}
    slurm.admin("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=a test")
    first = launch(slurm, "started", SLEEPS, **options)
    assert (first.get("changed"), first.get("job", {}).get("state")) == (True, "queued"), first
    number = first["job"]["slurm"]["job"]
    again = launch(slurm, "started", **options)
    assert again.get("changed") is False, again
    assert launch(slurm, "started", **options, threads=2)["msg"].startswith(
        f"Job sleeps is already queued in Slurm, as job {number}, under another specification ("
    )
    control = slurm.machines["control"]
    (seen,) = run_module(control, "gaudi_train_info", {"name": "sleeps", "jobs_dir": "/srv/jobs"})["jobs"]
    assert (seen["state"], seen["slurm"]["state"]) == ("queued", "PENDING") and seen["slurm"]["reason"]
    slurm.admin("scontrol", "update", "NodeName=n1,n2", "State=RESUME")
    output = slurm.shared / f"jobs/sleeps/sleeps-{number}.out"
    wait_for("its output", lambda: output.exists() and output.read_text() == "user\n", 240)
    stopped = launch(slurm, "stopped", name="sleeps", launcher=None, slurm=None)
    assert (stopped.get("changed"), stopped.get("job", {}).get("state")) == (True, "stopped"), stopped
    assert slurm.job(number)["JobState"] == "CANCELLED"
    asked = ["sacct", "-nPX", "-j", str(number), "--format=User,State"]
    wait_for("the user in sacct", lambda: slurm.admin(*asked).startswith("user|CANCELLED"), 240)


def health(slurm: SlurmCluster, node: str, more: str = "") -> tuple[str, str]:
    """State and reason of a node after its health check ran, as slurmd calls it."""
    slurm.set_options(f"{PARTIAL} {more}")
    slurm.machines[node].run(str(slurm.programs / "health"), environment={"SLURMD_NODENAME": node})
    state = slurm.states()[node]
    return ("DRAIN" if "DRAIN" in state else "IDLE", slurm.reason(node))


@pytest.fixture
def fence(slurm: SlurmCluster) -> Iterator[Path]:
    """The fence of n1, in a folder that each node has for itself."""
    folder = slurm.machines["n1"].folder / "fence"
    folder.mkdir()
    yield folder / "fence.json"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@PROOF.sampled("fence")
def test_a_fenced_node_is_drained_with_its_verdict_and_comes_back(slurm: SlurmCluster, fence: Path) -> None:
    skip_if_held(slurm, "fence")
    option = "--fence /mnt/fence"
    why = "accel3: uncorrectable ECC errors"
    fence.write_text(json.dumps({"reason": why, "step": "reset", "by": "healing"}))
    assert health(slurm, "n1", option) == ("DRAIN", f"gaudi3.scale: {why}")
    fence.unlink()
    assert health(slurm, "n1", option)[0] == "IDLE"
    fence.write_text(json.dumps({"reason": why}))
    slurm.admin("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=so that the job begins on n1")
    number = slurm.submit("-N1", "--gres=gpu:8", "-o", "out-%j", script="echo ran")
    wait_for("the prolog sent the job back", lambda: slurm.job(number).get("Restarts") == "1", 240)
    assert not (slurm.shared / f"out-{number}").exists()
    assert ("DRAIN" in slurm.states()["n1"], slurm.reason("n1")) == (True, f"gaudi3.scale: {why}")
    slurm.admin("scontrol", "update", "NodeName=n2", "State=RESUME")
    slurm.admin("scontrol", "update", f"JobId={number}", "StartTime=now")
    assert slurm.wait_for_state(number, "COMPLETED")["NodeList"] == "n2"
    assert health(slurm, "n1", option) == ("DRAIN", f"gaudi3.scale: {why}")
    assert fence.exists() and slurm.states()["n2"].startswith("IDLE"), "a drain makes no fence, and frees none"
    held(
        slurm,
        "fence",
        "drained with the reason by the health check and by the prolog, which sent the job back: it ran on the other "
        "node; idle again without the fence",
    )


def check(slurm: SlurmCluster, name: str, body: str) -> str:
    path = slurm.programs / name
    write_executable(path, f"#!/bin/sh\n{body}\n")
    return f"--examine {path}"


@PROOF.sampled("hung check")
def test_a_hung_check_drains_nothing_and_blocks_no_job(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "hung check")
    hung = check(slurm, "hung", "trap '' TERM; sleep 300 & wait; sleep 300")
    slurm.set_options(f"{PARTIAL} {hung} --patience 3")
    first = subprocess.Popen(slurm.machines["n1"].inside(str(slurm.programs / "health")))
    number = slurm.submit("-N1", "-w", "n1", "--gres=gpu:8", "-o", "/dev/null", script="srun true")
    slurm.wait_for_state(number, "COMPLETED")
    assert first.wait(240) == 0
    assert slurm.machines["n1"].run("pgrep", "-f", "programs/hung", check=False).stdout == "", "it was ended"
    assert set(slurm.states().values()) == {"IDLE"}
    held(
        slurm, "hung check", "ended after its time with all that it had started; the node kept its state, and a job ran"
    )


@PROOF.sampled("failing and lying check")
def test_a_check_that_fails_or_lies_decides_nothing(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "failing and lying check")
    for name, body in {
        "fails": "exit 3",
        "silent": "true",
        "binary": "head -c 5000 /dev/urandom",
        "endless": "yes '{\"drains\": true'",
        "odd": """echo '{"drains": "yes", "verdicts": []}'""",
        "empty": """echo '{"drains": true, "verdicts": []}'""",
        "deep": "python3 -c \"print('[' * 100000)\"",
    }.items():
        assert health(slurm, "n1", f"{check(slurm, name, body)} --patience 2") == ("IDLE", ""), name
    report = {"drains": True, "verdicts": [{"drains": True, "message": 'accel1 \x1b[31m\nState=x "q"'}]}
    (slurm.programs / "report.json").write_text(json.dumps(report))
    bad = check(slurm, "drains", f"cat {slurm.programs}/report.json")
    assert health(slurm, "n1", bad) == ("DRAIN", "gaudi3.scale: accel1 \\x1b[31m\\nState=x 'q'")
    assert health(slurm, "n2", bad) == ("IDLE", ""), "of two nodes one stays, as the check may be wrong"
    assert health(slurm, "n1", check(slurm, "later", "exit 1"))[0] == "DRAIN", "what cannot be read gives nothing back"
    assert health(slurm, "n1", check(slurm, "sound", """echo '{"drains": false}'"""))[0] == "IDLE"
    held(
        slurm,
        "failing and lying check",
        "seven kinds of answers decided nothing; a check that condemns all nodes drained one",
    )


@PROOF.sampled("broken programs")
def test_broken_programs_of_ours_hold_up_no_job(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "broken programs")
    program = slurm.programs / "gaudi_slurm.py"
    before = program.read_text()
    try:
        program.write_text("raise SystemExit(1)\n")
        number = slurm.submit("-N1", "-w", "n1", "--gres=gpu:8", "-o", "/dev/null", script="srun true")
        slurm.wait_for_state(number, "COMPLETED")
        assert slurm.states()["n1"] in ("IDLE", "IDLE+COMPLETING")
    finally:
        program.write_text(before)
    held(slurm, "broken programs", "a program that ends with 1: the job ran, and no node was drained")


@PROOF.sampled("failing prolog of a site")
def test_a_prolog_that_fails_drains_the_node_and_holds_the_job(slurm: SlurmCluster) -> None:
    """What Slurm does with a site's own, and why ours never fails."""
    skip_if_held(slurm, "failing prolog of a site")
    write_executable(slurm.programs / "prolog", "#!/bin/sh\nexit 1\n")
    number = slurm.submit("-N1", "-w", "n1", "--gres=gpu:8", "-o", "/dev/null", script="srun true")
    wait_for("the node is drained", lambda: "DRAIN" in slurm.states()["n1"], 240)
    assert slurm.reason("n1") == "Prolog error"
    assert "held" in slurm.job(number)["Reason"]
    slurm.set_options(PARTIAL)
    assert health(slurm, "n1") == ("DRAIN", "Prolog error"), "not ours to give back"
    held(
        slurm, "failing prolog of a site", "drained by Slurm with its own reason, the job held; our check left it alone"
    )


@PROOF.sampled("card held after the job")
def test_what_still_holds_a_card_after_its_job_is_ended(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "card held after the job")
    machine = slurm.machines["n2"]
    # No driver is here: what a process has open is shown by a link with the name of the card's file.
    machine.run("rm", "/dev/accel/accel1")
    machine.run("mknod", "-m", "666", "/dev/accel/accel1", "c", "1", "3")
    try:
        machine.serve("holder", "sh", "-c", "exec sleep 300 </dev/accel/accel1")
        wait_for("the holder", lambda: machine.run("pgrep", "-f", "sleep 300", check=False).stdout, 240)
        machine.run(str(slurm.programs / "epilog"), environment={"SLURM_JOB_GPUS": "2-3", "SLURMD_NODENAME": "n2"})
        assert machine.run("pgrep", "-f", "sleep 300", check=False).stdout, "a card of another job"
        machine.run(str(slurm.programs / "epilog"), environment={"SLURM_JOB_GPUS": "0-1", "SLURMD_NODENAME": "n2"})
        assert not machine.run("pgrep", "-f", "sleep 300", check=False).stdout
    finally:
        machine.run("rm", "/dev/accel/accel1")
        machine.run("mknod", "-m", "666", "/dev/accel/accel1", "c", "261", "1")
    held(
        slurm,
        "card held after the job",
        "a process that held a card of the job was ended, one with another job's card not",
    )


@PROOF.sampled("accounting")
def test_what_a_job_used_is_kept_and_the_database_is_made_once(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "accounting")
    number = slurm.submit("-N2", "--gres=gpu:2", "-o", "/dev/null", script="srun sleep 2")
    slurm.wait_for_state(number, "COMPLETED")
    asked = ["sacct", "-nPX", "-j", str(number), "--format=State,NNodes,AllocTRES"]
    # With PrivateData slurmdbd shows nothing to a user who has no account, and this one has none yet.
    wait_for("the job in sacct", lambda: slurm.admin(*asked).startswith("COMPLETED|"), 240)
    assert slurm.run(*asked) == ""
    state, nodes, resources = slurm.admin(*asked).strip().split("|")
    assert (state, nodes) == ("COMPLETED", "2")
    assert "gres/gpu=4" in resources.split(",")
    bill = slurm.shared / "bill.txt"

    def spent() -> float | None:
        """What the job cost: slurmdbd may hear of its end before its start, and shows it in no period until then."""
        bill.write_text(slurm.admin(*sacct.COMMAND.split(), "-a", "-D", "-S", "now-1hours"))
        return {each.job: each.spent for each in sacct.read(bill, 3600, "USD")}.get(f"slurm {number}")

    cost = wait_for("the job in its period", lambda: str(spent() or ""), 240)
    assert cost == str(4.0 * int(slurm.admin(*asked[:-1], "--format=ElapsedRaw")))
    control = slurm.machines["control"]
    assert "not supported by Slurm" not in (control.folder / "var/log/slurmdbd.log").read_text()
    assert not accounting.make_database(control, PASSWORD), "a second run changes nothing"
    assert accounting.make_database(control, "another-password", check=True)
    assert not accounting.make_database(control, PASSWORD), "a check changes nothing"
    assert PASSWORD not in control.run("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
    log = (control.folder / "var/log/slurmctld.log").read_text()
    assert "different slurm.conf" not in log
    held(
        slurm,
        "accounting",
        "sacct shows the job with its four cards, chargeback what it cost; a second run of the module changes nothing",
    )


@PROOF.sampled("reconfigure")
def test_what_is_read_again_needs_no_restart(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "reconfigure")
    control = slurm.machines["control"]
    # By its arguments: 26.05 begins itself again, in the same process, under another name.
    who = ("-f", "slurmctld -D")
    before = control.run("pgrep", *who).stdout
    files = [machine.folder / "etc/slurm/gaudi-read-again.conf" for machine in slurm.machines.values()]
    text = files[0].read_text()
    assert "KillWait=120\n" in text
    try:
        for file in files:
            file.write_text(text.replace("KillWait=120", "KillWait=121"))
        # What `systemctl reload slurmctld` does.
        control.run("pkill", "-HUP", *who)
        wait_for("the new time", lambda: re.search(r"KillWait += 121 sec", slurm.admin("scontrol", "show", "config")))
        assert control.run("pgrep", *who).stdout == before
        wait_for("idle nodes", lambda: set(slurm.states().values()) == {"IDLE"}, 240)
    finally:
        for file in files:
            file.write_text(text)
        control.run("pkill", "-HUP", *who)
    wait_for("the old time", lambda: re.search(r"KillWait += 120 sec", slurm.admin("scontrol", "show", "config")))
    held(slurm, "reconfigure", "a changed KillWait in force after a reload, in the same process")


def test_teams_become_accounts_with_their_limits(slurm: SlurmCluster) -> None:
    def shown(what: str, columns: tuple[str, ...]) -> str:
        return slurm.admin("sacctmgr", "-nP", "show", what, f"format={','.join(columns)}")

    def change(given: dict[str, Any], *, remove: bool = False) -> accounts.Change:
        rows = accounts.associations(shown("assoc", accounts.ASSOCIATIONS))
        levels = accounts.levels(shown("qos", accounts.QOS), "gres/gpu")
        return accounts.change(declared.teams({"teams": given}), rows, levels, "test", remove=remove)

    def changed(given: dict[str, Any], *, remove: bool = False) -> None:
        for command in change(given, remove=remove).commands:
            slurm.admin(*command)
        assert change(given, remove=remove) == accounts.Change((), ()), "a second run prints nothing"

    before = shown("assoc", accounts.ASSOCIATIONS)
    quota = {"cards": 16, "jobs": 4, "card_hours": 5000}
    changed({"vision": {"users": ["anna", "ben"], "quota": quota, "priority": 10}, "speech": {"users": ["carla"]}})
    assert "team-vision|10|gres/gpu=16|4|gres/gpu=300000|DenyOnLimit" in shown("qos", accounts.QOS).splitlines()
    moved = {"vision": {"users": ["anna"]}, "nlp": {"users": ["ben", "dora"], "quota": {"cards": 0}}}
    assert change(moved).notes == (
        "User ben is in the account vision and not in that team: --remove takes it out.",
        "Account speech was a team's and is in the file no more: --remove deletes it.",
    )
    changed(moved, remove=True)
    assert {"team-vision|0||||DenyOnLimit", "team-nlp|0|gres/gpu=0|||DenyOnLimit"} <= {
        *shown("qos", accounts.QOS).splitlines()
    }
    added = {*shown("assoc", accounts.ASSOCIATIONS).splitlines()} - {*before.splitlines()}
    assert {tuple(row.split("|")[1:3]) for row in added} == {
        ("vision", ""), ("vision", "anna"), ("nlp", ""), ("nlp", "ben"), ("nlp", "dora")
    }  # fmt: skip

    slurm.admin("sacctmgr", "-i", "add", "user", "name=user", "account=vision", "cluster=test")
    slurm.submit("--account=vision", script="sleep 100")
    wait_for("the job", lambda: "vision" in slurm.admin("squeue", "-h", "-t", "R", "-o", "%a"))
    (command,) = change({"nlp": moved["nlp"]}, remove=True).commands
    assert command[2:4] == ("delete", "account")
    refused = slurm.machines["control"].run(*command, check=False)
    assert refused.returncode == 1 and "Job(s) active" in refused.stdout + refused.stderr


@PROOF.sampled("teams apart")
def test_a_user_of_a_team_neither_sees_nor_touches_jobs_of_another(slurm: SlurmCluster) -> None:
    skip_if_held(slurm, "teams apart")
    control = slurm.machines["control"]
    files = [machine.folder / "etc/slurm/slurm.conf" for machine in slurm.machines.values()]
    before = files[0].read_text()
    for account, user in (("vision", "user"), ("speech", "other")):
        slurm.admin("sacctmgr", "-i", "add", "account", account, "cluster=test", check=False)
        slurm.admin("sacctmgr", "-i", "add", "user", f"name={user}", f"account={account}", "cluster=test", check=False)
    script = SLEEPS.replace("job-name=sleeps", "job-name=apart")
    number = launch(slurm, "started", script, name="apart", user="user", config={})["job"]["slurm"]["job"]
    slurm.wait_for_state(number, "RUNNING")
    job, folder = str(number), slurm.shared / "jobs/apart"
    output = folder / f"apart-{job}.out"
    wait_for("its output", lambda: output.exists() and output.read_text() == "user\n", 240)

    def denied(*command: str) -> str:
        # scontrol ends with 0 for some of what it was refused.
        return slurm.run(*command, user=OTHER, check=False)

    assert slurm.run("squeue", "-h", "-o", "%i") == f"{job}\n", "its own user sees it"
    assert slurm.run("squeue", "-h", "-o", "%i", user=OTHER) == ""
    asked = ["sacct", "-nPXa", "-j", job, "--format=JobID"]
    wait_for("the job in sacct", lambda: slurm.run(*asked) == f"{job}\n", 240)
    assert slurm.run(*asked, user=OTHER) == ""
    for command in (
        ["scontrol", "show", "job", job],
        ["scontrol", "write", "batch_script", job, "-"],
        ["scontrol", "requeue", job],
        ["scontrol", "hold", job],
        ["scontrol", "update", f"JobId={job}", "TimeLimit=1"],
        ["scancel", job],
        ["srun", f"--jobid={job}", "true"],
        ["ls", "/srv/jobs/apart"],
        ["cat", f"/srv/jobs/apart/{output.name}"],
        ["cat", "/srv/jobs/.control/apart/job.sbatch"],
        ["touch", "/srv/jobs/apart/x"],
    ):
        assert re.search("denied|not permitted|[Ii]nvalid (job|user) id", denied(*command)), command
    found = slurm.job(number)
    assert (found["JobState"], found["Restarts"], found["TimeLimit"]) == ("RUNNING", "0", "UNLIMITED")
    slurm.run("scancel", job)
    slurm.wait_for_state(number, "CANCELLED")

    # Nor does it start jobs on another team's account, where slurmctld keeps to associations.
    try:
        for file in files:
            file.write_text(before + "AccountingStorageEnforce=associations,limits,qos\n")
        control.end("slurmctld")
        slurm.start_controller()
        wait_for("the controller answers", lambda: slurm.states(), 240)
        wrong = denied("sbatch", "--account=vision", "--wrap=true", "-o", "/dev/null")
        assert "Invalid account or account/partition combination" in wrong
        own = slurm.run("sbatch", "--parsable", "--account=speech", "--wrap=true", "-o", "/dev/null", user=OTHER)
        slurm.wait_for_state(int(own), "COMPLETED")
    finally:
        for file in files:
            file.write_text(before)
        control.end("slurmctld")
        slurm.start_controller()
        wait_for("the controller answers", lambda: slurm.states(), 240)
    held(
        slurm,
        "teams apart",
        "with PrivateData a user of another team saw the job in no queue, script, output or accounting; could not end, "
        "hold, requeue, change or join it; and was refused its team's account",
    )
