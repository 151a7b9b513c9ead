"""gaudi_train and gaudi_train_info with jobs of a made-up Slurm."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_train, gaudi_train_info

ME = pwd.getpwuid(os.getuid()).pw_name
WRITES = """#!/bin/sh
if grep -q refused cluster.yml; then
  echo "gaudi3-train: partition is 'a b'." >&2; echo "time is soon." >&2; exit 2
fi
echo '#!/bin/bash'; cat cluster.yml; [ ! -e job.yml ] || cat job.yml
"""


class Slurm:
    """A stand-in for Slurm's commands: jobs by their numbers, as the test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: dict[int, dict[str, str]] = {}
        self.kept: dict[int, dict[str, str]] = {}
        self.missing: set[str] = set()
        self.users = {ME}
        self.calls: list[str] = []
        self.down = False
        self.dies = False
        self.refuses = ""
        monkeypatch.setattr(AnsibleModule, "run_command", self.run)
        monkeypatch.setattr(AnsibleModule, "get_bin_path", self.find)

    def find(self, name: str, required: bool, opt_dirs: Any = ()) -> str | None:
        return None if name in self.missing else f"/bin/{Path(name).name}"

    def run(self, argv: list[str], *, environ_update: dict[str, str], cwd: str | None = None) -> tuple[int, str, str]:
        words = argv[next(i for i, word in enumerate(argv) if word.startswith("/")) :]
        if words[0].endswith("/gaudi3-train"):
            done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr
        tool = Path(words[0]).name
        if tool == "systemctl":
            return 0, "ActiveState=inactive\n", ""
        if self.down:
            return 1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
        answer: tuple[int, str, str] = getattr(self, tool)(words[1:], cwd)
        return answer

    def squeue(self, words: list[str], _folder: str | None) -> tuple[int, str, str]:
        assert words[0] == "--noheader" and words[1] in {f"--user={each}" for each in self.users}
        assert words[2] == "--name=demo"
        live = {n: job for n, job in self.jobs.items() if job["state"] in ("PENDING", "RUNNING", "COMPLETING")}
        return 0, "".join(f"{n}|{job['state']}|{job['reason']}|n1|{job['script']}\n" for n, job in live.items()), ""

    def scontrol(self, words: list[str], _folder: str | None) -> tuple[int, str, str]:
        job = self.jobs.get(int(words[-1]))
        if job is None:
            return 1, "", "slurm_load_jobs error: Invalid job id specified"
        line = f"JobId={words[-1]} JobName=demo JobState={job['state']} Reason=None ExitCode={job.get('exit', '0:0')}"
        return 0, line + " NodeList=n1\n", ""

    def sacct(self, words: list[str], _folder: str | None) -> tuple[int, str, str]:
        kept = self.kept.items()
        return 0, "".join(f"{n}|demo|{job['state']}|{job['exit']}|n1\n" for n, job in kept), ""

    def sbatch(self, words: list[str], folder: str | None) -> tuple[int, str, str]:
        if self.refuses:
            return 1, "", self.refuses
        number = 17 + len(self.calls)
        self.jobs[number] = {"state": "PENDING", "reason": "Resources", "script": words[-1]}
        self.calls.append(f"sbatch {words[0]} in {Path(str(folder)).name}")
        if self.dies:
            raise KeyboardInterrupt
        return 0, f"{number};cluster\n", ""

    def scancel(self, words: list[str], _folder: str | None) -> tuple[int, str, str]:
        self.jobs[int(words[0])]["state"] = "CANCELLED"
        self.calls.append(f"scancel {words[0]}")
        return 0, "", ""


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    return Slurm(monkeypatch)


class Job:
    """The module with the options of one job in a folder of its own."""

    def __init__(self, folder: Path, run_module: Any) -> None:
        self.folder = folder
        self._run = run_module
        (folder / "venv/bin").mkdir(parents=True)
        for name in ("python", "gaudi3-train"):
            (folder / "venv/bin" / name).write_text(WRITES)
            (folder / "venv/bin" / name).chmod(0o755)
        self.places = {"jobs_dir": str(folder / "jobs"), "unit_dir": str(folder / "units")}
        self.options: dict[str, Any] = {
            "name": "demo",
            "launcher": "slurm",
            "slurm": {"time": "24:00:00", "cpu": 128, "partition": "gaudi"},
            "config": {"train": {"max_steps": 20}},
            "nodes": ["gaudi-1", "gaudi-2"],
            "processes_per_node": 8,
            "user": ME,
            "venv": str(folder / "venv"),
        }

    def __call__(self, state: str, **options: Any) -> dict[str, Any]:
        check, diff = options.pop("check", False), options.pop("diff", False)
        given = {**self.options, **self.places, **options}
        given = {name: value for name, value in given.items() if value is not None}
        result: dict[str, Any] = self._run(gaudi_train, check=check, diff=diff, state=state, **given)
        return result

    def info(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._run(gaudi_train_info, **{**self.places, **options})
        (job,) = found["jobs"]
        return dict(job)

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "jobs/.control/demo/job.json").read_text()))

    @property
    def script(self) -> Path:
        return self.folder / "jobs/.control/demo/job.sbatch"


@pytest.fixture
def job(tmp_path: Path, run_module: Any) -> Job:
    return Job(tmp_path, run_module)


def test_a_job_is_submitted_once_and_its_number_kept(job: Job, slurm: Slurm) -> None:
    checked = job("started", check=True, diff=True)
    assert (checked["changed"], checked["job"]["state"], slurm.calls) == (True, "absent", [])
    assert not (job.folder / "jobs").exists(), "a check writes nothing"
    result = job("started", diff=True)
    assert result["changed"] is True and slurm.calls == ["sbatch --parsable in demo"]
    assert result["diff"] == checked["diff"], "the check has told the same"
    assert result["diff"][0]["before_header"] == f"{job.script} (absent)"
    assert result["diff"][0]["after"] == job.script.read_text()
    assert result["job"]["slurm"] == {"job": 17, "state": "PENDING", "reason": "Resources", "nodes": "n1"}
    assert (result["job"]["state"], result["job"]["ending"]) == ("queued", None)
    assert job.record["slurm"] == {"job": 17, "user": ME}
    assert '"time": "24:00:00"' in job.script.read_text() and '"nodes": 2' in job.script.read_text()
    for state in ("PENDING", "RUNNING", "COMPLETING"):
        slurm.jobs[17]["state"] = state
        again = job("started", diff=True)
        assert (again["changed"], again.get("diff")) == (False, None)
    assert len(slurm.calls) == 1
    slurm.jobs[17]["state"] = "COMPLETED"
    assert (job("started")["changed"], job("started")["job"]["state"]) == (False, "finished")


def test_another_description_of_a_job_that_is_queued_is_told_and_not_submitted(job: Job, slurm: Slurm) -> None:
    job("started")
    for other in ({"slurm": {"time": "48:00:00", "cpu": 128}}, {"config": {"train": {"max_steps": 30}}},
                  {"nodes": ["gaudi-1"]}, {"environment": {"A": 1}}):  # fmt: skip
        result = job("started", **other)
        assert re.fullmatch(
            r"Job demo is already queued in Slurm, as job 17, under another specification \([0-9a-f]{8}, asked for "
            r"[0-9a-f]{8}\): stop it first with state=stopped, or choose another name\.",
            result["msg"],
        ), result
    assert job("started", nodes=["a", "b"])["changed"] is False, "Slurm chooses the nodes"
    assert len(slurm.calls) == 1


def test_a_stop_cancels_the_job_and_a_start_goes_on(job: Job, slurm: Slurm) -> None:
    job("started")
    assert job("stopped", check=True)["changed"] is True and len(slurm.calls) == 1
    stopped = job("stopped", launcher=None, slurm=None, config=None)
    assert (stopped["changed"], stopped["job"]["state"]) == (True, "stopped"), "it was started by Slurm"
    assert slurm.calls[1:] == ["scancel 17"]
    assert job("stopped")["changed"] is False
    assert job("started", resume_stopped=False)["changed"] is False
    assert job("started")["changed"] is True and job.record["slurm"]["job"] == 19
    slurm.jobs[19]["state"] = "RUNNING"
    removed = job("absent", launcher=None, slurm=None, config=None, diff=True)
    assert (removed["changed"], removed["job"]["state"], slurm.calls[-1]) == (True, "absent", "scancel 19")
    assert removed["diff"][0]["after"] == "" and not job.script.exists()
    assert job("absent", launcher=None, slurm=None, config=None)["changed"] is False
    assert (job.folder / "jobs/demo").is_dir(), "what it wrote stays"


def test_another_configuration_moves_the_folder_aside_and_another_launch_does_not(job: Job, slurm: Slurm) -> None:
    job("started")
    slurm.jobs[17]["state"] = "FAILED"
    (job.folder / "jobs/demo/checkpoint").touch()
    assert job("started", nodes=["gaudi-1"])["archived"] is None
    slurm.jobs[18]["state"] = "FAILED"
    result = job("started", config={"train": {"max_steps": 30}})
    assert re.fullmatch(rf"{job.folder}/jobs/demo\.[0-9a-f]{{8}}", result["archived"])
    assert (Path(result["archived"]) / "checkpoint").exists() and not (job.folder / "jobs/demo/checkpoint").exists()


def test_a_run_that_ends_behind_sbatch_finds_its_job_again(job: Job, slurm: Slurm) -> None:
    slurm.dies = True
    with pytest.raises(KeyboardInterrupt):
        job("started")
    slurm.dies = False
    assert job.record["slurm"] == {"user": ME}
    assert job("started")["changed"] is False and len(slurm.calls) == 1
    assert job.record["slurm"]["job"] == 17


def test_a_job_of_somebody_else_under_this_name_is_not_touched(job: Job, slurm: Slurm) -> None:
    slurm.jobs[5] = {"state": "RUNNING", "reason": "None", "script": "/home/me/demo.sbatch"}
    assert job("started")["msg"] == (
        f"Slurm has job 5 of the name demo and user {ME}, which was not submitted here: cancel it with scancel, or "
        "choose another name."
    )
    assert job("stopped")["changed"] is False
    assert slurm.calls == []


@pytest.mark.parametrize(
    ("kept", "status", "state", "ending"),
    [
        ({"state": "COMPLETED", "exit": "0:0"}, "", "finished", "COMPLETED"),
        ({"state": "FAILED", "exit": "75:0"}, "", "interrupted", "FAILED, exit status 75"),
        ({"state": "FAILED", "exit": "1:0"}, "failed", "failed", "FAILED, exit status 1"),
        ({"state": "CANCELLED by 0", "exit": "0:0"}, "", "stopped", "CANCELLED"),
        ({"state": "CANCELLED by 0", "exit": "0:15"}, "interrupted", "interrupted", "CANCELLED"),
        ({"state": "TIMEOUT", "exit": "0:0"}, "running", "failed", "TIMEOUT"),
        ({"state": "NODE_FAIL", "exit": "0:0"}, "", "failed", "NODE_FAIL"),
        (None, "finished", "finished", None),
        (None, "failed", "failed", None),
        (None, "running", "stopped", None),
    ],
)
def test_how_a_job_ended_that_slurm_has_forgotten(
    kept: dict[str, str] | None, status: str, state: str, ending: str | None, job: Job, slurm: Slurm
) -> None:
    job("started")
    slurm.jobs.clear()
    slurm.kept = {} if kept is None else {17: kept}
    if status:
        said = {"state": status, "max_steps": 20, "updated_at": time.time() + 1}
        (job.folder / "jobs/demo/status.json").write_text(json.dumps(said))
    found = job.info(name="demo")
    assert (found["state"], found["ending"]) == (state, ending)
    assert found["slurm"]["job"] == 17 and found["slurm"]["state"] == ("" if kept is None else kept["state"].split()[0])


def test_the_info_shows_what_slurm_says_and_the_output(job: Job, slurm: Slurm) -> None:
    job("started")
    (job.folder / "jobs/demo/demo-17.out").write_text("one\ntwo\n\x1b[31mthree\n")
    found = job.info(lines=2)
    assert (found["state"], found["slurm"]["reason"]) == ("queued", "Resources")
    assert found["log"] == ["two", "\\x1b[31mthree"]
    assert "unit" not in found and found["missing"] == []
    (job.folder / "jobs/demo/demo-17.out").unlink()
    (job.folder / "jobs/demo/demo-17.out").symlink_to("/etc/passwd")
    assert job.info(lines=2)["log"] == [], "root follows no link of the user's"
    slurm.down = True
    lost = job.info()
    why = "Slurm does not answer: slurm_load_jobs error: Unable to contact slurm controller (connect failure)."
    assert (lost["state"], lost["ending"]) == ("unknown", why)
    slurm.missing = {"squeue"}
    assert job.info()["ending"].startswith("squeue is not on this host: submit from one that has Slurm's commands")


def test_a_job_whose_user_is_gone_is_not_cancelled_by_somebody_else(job: Job, slurm: Slurm) -> None:
    job("started")
    record = job.folder / "jobs/.control/demo/job.json"
    record.write_text(json.dumps({**job.record, "slurm": {"job": 17, "user": "nobodyhere"}}))
    slurm.users.add("nobodyhere")
    assert job("stopped")["msg"] == "User nobodyhere, whose job it is, does not exist on this host: add the user again."


NOT = "and launcher slurm does not carry it"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"spares": 1, "max_restarts": 1}, f"spares is set, {NOT}: Slurm gives a job"),
        ({"min_nodes": 1}, f"min_nodes is set, {NOT}"),
        ({"container": {"image": "x"}}, f"container is set, {NOT}: call the engine in a script"),
        ({"node_config": {"seed": 1}}, f"node_config is set, {NOT}: all nodes read one configuration"),
        ({"environment_files": ["/etc/mine.env"]}, f"environment_files is set, {NOT}: read them in slurm.setup"),
        ({"modules": [1]}, f"modules is set, {NOT}"),
        ({"groups": ["render"]}, f"groups is set, {NOT}"),
        ({"start_at_boot": True}, f"start_at_boot is set, {NOT}"),
        ({"rejoin": True}, f"rejoin is set, {NOT}"),
        ({"slurm": None}, "launcher is slurm, and slurm is not given: set slurm.time and slurm.cpu."),
        ({"launcher": None}, "slurm is given, and launcher is not slurm: set launcher to slurm"),
        ({"jobs_dir": "/var/lib/gaudi3-scale/jobs"}, "jobs_dir is /var/lib/gaudi3-scale/jobs, which each node has for"),
        ({"environment": {"HF_TOKEN": "hf_" + "x" * 34}}, "HF_TOKEN"),
        ({"slurm": {"time": "1", "cpu": 1, "partition": "refused"}}, "partition is 'a b'. time is soon."),
        ({"name": "A"}, "name is 'A', which cannot be used"),
        ({"venv": "/nowhere"}, "/nowhere/bin/python is missing on this node"),
    ],
)
def test_what_cannot_be_carried_is_refused_before_anything_changes(
    options: dict[str, Any], said: str, job: Job, slurm: Slurm
) -> None:
    result = job("started", **options)
    assert result["failed"] and said in result["msg"]
    assert slurm.calls == [] and not (job.folder / "jobs").exists()


def test_a_check_before_the_trainer_is_there_predicts_the_submission(job: Job, slurm: Slurm) -> None:
    assert job("started", venv="/nowhere", check=True)["changed"] is True


def test_what_sbatch_says_is_said(job: Job, slurm: Slurm) -> None:
    slurm.refuses = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination\n"
    result = job("started")
    assert result["msg"] == (
        "sbatch did not take job demo: sbatch: error: Batch job submission failed: Invalid account or "
        "account/partition combination."
    )
    slurm.refuses = ""
    assert job("started")["changed"] is True
    slurm.missing = {"squeue"}
    assert job("started")["msg"].startswith("squeue is not on this host: submit from one that has Slurm's commands")


def test_a_job_is_carried_by_one_launcher_at_a_time(job: Job, slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    job("started")
    as_unit = {"launcher": "systemd", "slurm": None, "head_address": "10.0.0.1", "nodes": ["gaudi-1"]}
    for state in ("started", "stopped", "absent"):
        assert job(state, **as_unit, purge=True)["msg"] == (
            "Job demo is queued in Slurm as job 17: give launcher=slurm, or stop it first with that and state=stopped."
        )
    assert slurm.jobs[17]["state"] == "PENDING" and job.record["slurm"]["job"] == 17
    job("absent", launcher=None, slurm=None)
    (job.folder / "jobs/.control/demo/job.json").unlink()
    (job.folder / "units").mkdir()
    (job.folder / "units/gaudi-boot-demo.service").touch()
    output = job.folder / "jobs/demo/checkpoint"
    output.parent.mkdir(exist_ok=True)
    output.touch()
    for state in ("started", "stopped", "absent"):
        assert "Job demo is a unit of this host" in job(state, purge=True)["msg"]
    assert output.exists(), "the unit's, which may run"


def test_a_job_of_units_on_other_hosts_is_known_by_what_it_writes(job: Job, slurm: Slurm) -> None:
    folder = job.folder / "jobs/demo"
    folder.mkdir(parents=True)
    (folder / "checkpoint").touch()

    def says(state: str, ago: float) -> None:
        said = {"state": state, "max_steps": 20, "updated_at": time.time() - ago}
        (folder / "status.json").write_text(json.dumps(said))

    says("running", 20)
    for state in ("started", "stopped", "absent"):
        assert re.match(
            r"Job demo was not submitted to Slurm, and wrote 2\d s ago that it runs: stop its units with launcher="
            r"systemd and state=stopped on their nodes first",
            job(state, purge=True)["msg"],
        )
    assert (folder / "checkpoint").exists() and slurm.calls == []
    says("starting", 20)
    assert "wrote 2" in job("started")["msg"]
    says("interrupted", 20)
    assert job("stopped")["changed"] is False
    says("running", 400)
    assert job("started")["changed"] is True
    says("running", 20)
    assert job("stopped")["changed"] is True, "that is the job of Slurm"
