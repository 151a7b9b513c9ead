"""gaudi_train and gaudi_train_info against a made-up systemd."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import rules
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_train, gaudi_train_info

UNIT = "gaudi-train-demo.service"
SHOW = "--property=LoadState,ActiveState,SubState,Result,ExecMainCode,ExecMainStatus,InvocationID"


class Systemd:
    """A stand-in for systemctl and journalctl: one unit, whose state the test sets, or several of which some run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.state = {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
        self.several: set[str] | None = None
        self.start_rc = 0
        self.journal = "last\nfirst\n"
        monkeypatch.setattr(AnsibleModule, "run_command", self.run)
        monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda _self, name, required: f"/bin/{name}")

    def run(self, argv: list[str], **options: Any) -> tuple[int, str, str]:
        assert options == {"environ_update": {"LC_ALL": "C", "LANGUAGE": "C"}}
        self.calls.append(" ".join(argv))
        if argv[0] == "/bin/journalctl":
            return 0, self.journal, ""
        if argv[1] == "show" and self.several is not None:
            return 0, f"ActiveState={'active' if argv[2] in self.several else 'inactive'}\n", ""
        if argv[1] == "show":
            return 0, "".join(f"{key}={value}\n" for key, value in self.state.items()), ""
        if argv[1] == "start":
            if self.start_rc:
                return self.start_rc, "", "Job for the unit failed\nbecause of reasons."
            self.state["ActiveState"] = "active"
            if self.several is not None:
                self.several.add(argv[2])
        if argv[1] == "stop":
            self.state["ActiveState"] = "failed"
        if argv[1] == "reset-failed" and self.state["ActiveState"] == "failed":
            self.state["ActiveState"] = "inactive"
        return 0, "", ""

    def ran(self) -> list[str]:
        """What was run beside looking, and forget it."""
        calls = [call.replace("/bin/systemctl ", "") for call in self.calls if " show " not in call]
        self.calls.clear()
        return calls


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    return Systemd(monkeypatch)


class Job:
    """The module with the options of one job in a folder of its own."""

    def __init__(self, folder: Path, run_module: Any) -> None:
        self.folder = folder
        self._run = run_module
        (folder / "units").mkdir()
        (folder / "venv/bin").mkdir(parents=True)
        for name in ("python", "gaudi3-train"):
            (folder / "venv/bin" / name).touch(mode=0o755)
        self.places = {"jobs_dir": str(folder / "jobs"), "unit_dir": str(folder / "units")}
        self.options = {
            "name": "demo",
            "config": {"train": {"max_steps": 20}},
            "nodes": ["gaudi-1"],
            "head_address": "10.0.0.1",
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "venv": str(folder / "venv"),
        }

    def __call__(self, state: str, **options: Any) -> dict[str, Any]:
        check, diff = options.pop("check", False), options.pop("diff", False)
        given = {**self.options, **self.places, **options}
        given = {name: value for name, value in given.items() if value is not None}
        result: dict[str, Any] = self._run(gaudi_train, check=check, diff=diff, state=state, **given)
        return result

    def says(self, **status: Any) -> None:
        """The trainer writes its status."""
        status = {"max_steps": 20, "updated_at": time.time() + 1, **status}
        (self.folder / "jobs/demo/status.json").write_text(json.dumps(status))

    def files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.is_file() and "venv" not in path.parts and path.name != ".lock"
        )


@pytest.fixture
def job(tmp_path: Path, run_module: Any) -> Job:
    return Job(tmp_path, run_module)


FILES = [*(f"jobs/.control/demo/{name}" for name in ("config.yml", "job.json", "secret")), f"units/{UNIT}"]


def test_start(job: Job, systemd: Systemd) -> None:
    result = job("started")
    assert result["changed"] is True
    assert result["job"]["state"] == "running"
    assert result["job"]["ending"] is None
    assert systemd.ran() == ["daemon-reload", f"start {UNIT}"]
    assert job.files() == FILES
    record = json.loads((job.folder / "jobs/.control/demo/job.json").read_text())
    assert record["spec_sha256"] == result["job"]["spec_sha256"]
    assert record["specification"]["config"] == {"train": {"max_steps": 20}}


def test_a_job_starts_only_where_its_data_is(job: Job, systemd: Systemd) -> None:
    place = job.folder / "data/755fdfaaf01f"
    place.mkdir(parents=True)
    refused = job("started", data_sets=[str(place)])
    said = f"{place} is no whole set of data on this node: bring it, as the playbook gaudi3.scale.data does."
    assert (refused["msg"], systemd.ran(), job.files()) == (said, [], [])
    (place / "index.json").touch()
    started = job("started", data_sets=[str(place)])
    assert (started["changed"], systemd.ran()) == (True, ["daemon-reload", f"start {UNIT}"])
    record = f"{job.folder}/data/.755fdfaaf01f.users/{UNIT}"
    assert f"ExecStopPost=-+/bin/rm -f {record}\n" in (job.folder / "units" / UNIT).read_text()


def test_the_secret_of_a_job_is_in_its_own_file_alone(job: Job, systemd: Systemd) -> None:
    given = "5" * 64
    nodes = ["gaudi-1", "gaudi-2"]
    result = job("started", nodes=nodes, secret=given, diff=True)
    place = job.folder / "jobs/.control/demo/secret"
    assert place.read_text() == given + "\n" and place.stat().st_mode & 0o777 == 0o640
    others = [path for path in job.folder.rglob("*") if path.is_file() and path != place and "venv" not in path.parts]
    assert all(given not in path.read_text() for path in others) and given not in json.dumps(result)
    assert f"--secret-file={place} " in (job.folder / "units" / UNIT).read_text()
    assert job("started", nodes=nodes, secret="6" * 64)["changed"] is False, "a job that runs keeps its own"
    assert job("absent")["changed"] is True and not place.exists()
    alone = job("started")
    assert alone["changed"] and re.fullmatch("[0-9a-f]{64}\n", place.read_text()), "one node makes its own up"


def test_a_job_of_several_nodes_does_not_start_without_a_secret(job: Job, systemd: Systemd) -> None:
    result = job("started", nodes=["gaudi-1", "gaudi-2"], check=True)
    assert result["changed"] is True, "check mode needs none"
    result = job("started", nodes=["gaudi-1", "gaudi-2"])
    assert result["failed"] and "no secret by which they know each other" in result["msg"]
    assert job.files() == []


def test_exact_look(job: Job, systemd: Systemd) -> None:
    job("stopped")
    assert systemd.calls == [f"/bin/systemctl show {UNIT} {SHOW}"]


def test_running_job_is_left_alone(job: Job, systemd: Systemd) -> None:
    job("started")
    systemd.ran()
    for state in ("started", "finished", "ended"):
        assert job(state)["changed"] is False
    assert systemd.ran() == []


def test_a_job_that_is_only_waited_for_is_not_started(job: Job, systemd: Systemd) -> None:
    job("started")
    systemd.state["ActiveState"] = "failed"
    systemd.ran()
    result = job("ended")
    assert (result["changed"], result["job"]["state"], systemd.ran()) == (False, "failed", [])


def test_running_job_is_not_touched_for_another_specification(job: Job, systemd: Systemd) -> None:
    job("started")
    before = {name: (job.folder / name).read_text() for name in FILES}
    systemd.ran()
    result = job("started", max_restarts=3)
    assert result["failed"] is True and result["changed"] is False
    assert result["msg"].startswith("Job demo is already running on this node under another specification (")
    assert result["msg"].endswith("): stop it first with state=stopped, or choose another name.")
    assert result["job"]["state"] == "running"
    assert systemd.ran() == []
    assert {name: (job.folder / name).read_text() for name in FILES} == before


def test_finished_job_is_left_alone(job: Job, systemd: Systemd) -> None:
    job("started")
    job.says(state="finished", step=20)
    systemd.state["ActiveState"] = "inactive"
    systemd.ran()
    result = job("finished")
    assert result["changed"] is False
    assert result["job"]["state"] == "finished"
    assert result["job"]["status"]["step"] == 20
    assert systemd.ran() == []


@pytest.mark.parametrize(("unit", "said"), [("failed", "running"), ("inactive", "running"), ("inactive", "failed")])
def test_job_that_broke_off_starts_again_in_place(unit: str, said: str, job: Job, systemd: Systemd) -> None:
    job("started")
    job.says(state=said, step=7)
    (job.folder / "jobs/demo/checkpoints").mkdir()
    systemd.state["ActiveState"] = unit
    systemd.ran()
    result = job("started")
    assert result["changed"] is True and result["archived"] is None
    assert systemd.ran() == ["daemon-reload", f"start {UNIT}"]
    assert (job.folder / "jobs/demo/checkpoints").is_dir()


def test_stop(job: Job, systemd: Systemd) -> None:
    job("started")
    job.says(state="failed", step=7, error="SIGTERM")
    systemd.ran()
    result = job("stopped")
    assert result["changed"] is True
    assert result["job"]["state"] == "stopped"
    assert systemd.ran() == [f"stop {UNIT}", f"reset-failed {UNIT}"]
    assert job("stopped")["changed"] is False
    assert systemd.ran() == []


def test_a_job_that_is_stopped_ends_as_interrupted_and_is_started_again(job: Job, systemd: Systemd) -> None:
    job("started")
    job.says(state="interrupted", step=7, interruption="SIGTERM was sent to this process (rank 0)")
    assert job("stopped")["job"]["state"] == "interrupted"
    systemd.ran()
    assert job("started")["changed"] is True
    assert systemd.ran() == ["daemon-reload", f"start {UNIT}"]


def test_stop_of_a_job_that_never_was(job: Job, systemd: Systemd) -> None:
    result = job("stopped")
    assert result["changed"] is False
    assert result["job"]["state"] == "absent"


def test_absent_keeps_the_output_and_what_made_it(job: Job, systemd: Systemd) -> None:
    job("started")
    job.says(state="running", step=7)
    systemd.ran()
    assert job("absent")["changed"] is True
    assert systemd.ran() == [f"stop {UNIT}", f"reset-failed {UNIT}", "daemon-reload", f"reset-failed {UNIT}"]
    assert job.files() == ["jobs/.control/demo/job.json", "jobs/demo/status.json"]
    assert job("absent")["changed"] is False
    result = job("started")
    assert result["changed"] is True and result["archived"] is None


def test_purge(job: Job, systemd: Systemd) -> None:
    job("started")
    assert job("absent", purge=True)["changed"] is True
    assert job.files() == []
    assert not (job.folder / "jobs/demo").exists()
    assert job("absent", purge=True)["changed"] is False


def test_another_training_moves_the_old_output_aside(job: Job, systemd: Systemd) -> None:
    old = job("started")["job"]["spec_sha256"][:8]
    job.says(state="finished", step=20)
    systemd.state["ActiveState"] = "inactive"
    result = job("started", config={"train": {"max_steps": 40}})
    assert result["changed"] is True
    assert result["archived"] == str(job.folder / f"jobs/demo.{old}")
    assert set(job.files()) == {
        "jobs/.control/demo/config.yml",
        "jobs/.control/demo/job.json",
        "jobs/.control/demo/secret",
        f"jobs/.control/demo.{old}/config.yml",
        f"jobs/.control/demo.{old}/job.json",
        f"jobs/.control/demo.{old}/secret",
        f"jobs/demo.{old}/status.json",
        f"units/{UNIT}",
    }
    assert "max_steps: 20" in (job.folder / f"jobs/.control/demo.{old}/config.yml").read_text()
    assert "max_steps: 40" in (job.folder / "jobs/.control/demo/config.yml").read_text()


def test_of_three_specifications_in_turn_as_many_are_kept_as_allowed(job: Job, systemd: Systemd) -> None:
    def turn(steps: int, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = job("started", config={"train": {"max_steps": steps}}, **more)
        if not more.get("check"):
            job.says(state="finished", step=steps)
            systemd.state["ActiveState"] = "inactive"
        return result

    def aside() -> list[str]:
        return sorted(
            str(path)
            for folder in (job.folder / "jobs", job.folder / "jobs/.control")
            for path in folder.iterdir()
            if path.name.startswith("demo.")
        )

    turn(20)
    (job.folder / "jobs/demo.mine").mkdir()  # no folder of this module's
    first = turn(30, keep_archives=1)
    assert first["removed_archives"] == []
    before = aside()
    planned = turn(40, keep_archives=1, check=True)
    assert planned["removed_archives"] == [first["archived"]] and aside() == before
    second = turn(40, keep_archives=1)
    assert second["removed_archives"] == [first["archived"]]
    control = job.folder / "jobs/.control"
    name = second["archived"].rpartition("/")[2]
    assert aside() == sorted([str(control / name), second["archived"], str(job.folder / "jobs/demo.mine")])
    none = turn(50, keep_archives=0)
    assert none["removed_archives"] == [second["archived"], none["archived"]]
    assert aside() == [str(job.folder / "jobs/demo.mine")]
    # Without a bound all stay, and a bound that is none is refused.
    assert turn(60)["removed_archives"] == []
    assert turn(70, keep_archives=-1)["msg"] == "keep_archives is -1: give 0 or more, or leave it out to keep all."


def test_another_launch_of_the_same_training_goes_on(job: Job, systemd: Systemd) -> None:
    job("started")
    systemd.state["ActiveState"] = "failed"
    result = job("started", processes_per_node=4)
    assert result["changed"] is True and result["archived"] is None
    assert "--nproc-per-node=4" in (job.folder / "units" / UNIT).read_text()


def test_a_boot_starts_the_job_where_that_was_asked_for(job: Job, systemd: Systemd) -> None:
    boots = "gaudi-boot-demo.service"
    predicted = job("started", start_at_boot=True, check=True, diff=True)
    assert [each["after_header"].rpartition("/")[2] for each in predicted["diff"]] == ["config.yml", UNIT, boots]
    job("started", start_at_boot=True)
    assert systemd.ran() == ["daemon-reload", f"enable {boots}", f"start {UNIT}"]
    text = (job.folder / "units" / boots).read_text()
    assert f"ExecStart=+/bin/systemctl --no-block start {UNIT}\n" in text and "\nWantedBy=multi-user.target\n" in text
    job("stopped")
    assert systemd.ran() == [f"disable {boots}", f"stop {UNIT}", f"reset-failed {UNIT}"]
    assert not (job.folder / "units" / boots).exists(), "a job that was stopped stays so"
    job("started", start_at_boot=True)
    systemd.state["ActiveState"] = "inactive"
    systemd.ran()
    job("started")
    assert systemd.ran() == [f"disable {boots}", "daemon-reload", f"start {UNIT}"]


@pytest.mark.parametrize(
    ("status", "starts"),
    [(None, True), ("running", True), ("failed", True), ("interrupted", True), ("finished", False), ("spare", False)],
)
def test_a_boot_leaves_alone_what_is_over(
    status: str | None, starts: bool, job: Job, systemd: Systemd, tmp_path: Path
) -> None:
    job("started", start_at_boot=True)
    if status is not None:
        job.says(state=status)
    text = (job.folder / "units/gaudi-boot-demo.service").read_text()
    (condition,) = re.findall("^ExecCondition=(.*)$", text, re.MULTILINE)
    done = subprocess.run(shlex.split(condition.replace("$$", "$")), check=False)
    assert (done.returncode == 0) is starts


def test_a_second_job_on_the_same_ports_is_refused_and_on_others_runs(job: Job, systemd: Systemd) -> None:
    """A job's metrics would end the second one when it starts, and its rendezvous when the first one ends."""
    systemd.several = set()
    job("started", is_head=True)
    taken = "of this node is taken by job demo, which runs"
    for check in (True, False):
        assert job("started", name="other", rdzv_port=29500, is_head=True, check=check)["msg"] == (
            f"Port 9410 {taken} (metrics), and needed for this job's metrics: give one of them another metrics.port in "
            "its configuration (0 is any free one), or stop job demo first."
        )
    elsewhere = {"name": "other", "config": {"metrics": {"port": 9411}}}
    assert job("started", is_head=True, **elsewhere)["msg"] == (
        f"Port 29400 {taken} (rendezvous), and needed for this job's rendezvous: give one of them another rdzv_port, "
        "or stop job demo first."
    )
    assert not (job.folder / "jobs/other").exists()
    assert job("started", is_head=False, **elsewhere)["changed"] is True, "only the head is where processes meet"
    second = job("started", name="third", is_head=False, node_config={"metrics": {"port": 9411}})
    assert "Port 9411 of this node is taken by job other" in second["msg"]
    systemd.several.clear()
    assert job("started", name="third", is_head=True)["changed"] is True, "jobs that do not run need no port"


def test_what_differs_from_node_to_node_is_no_other_job(job: Job, systemd: Systemd) -> None:
    one = job("started", address="10.0.0.1", is_head=True, node_config={"metrics": {"address": "10.0.0.1"}})
    assert 'address: "10.0.0.1"' in (job.folder / "jobs/.control/demo/config.yml").read_text()
    two = job("started", address="10.0.0.2", is_head=False, node_config={"metrics": {"address": "10.0.0.2"}})
    assert two["changed"] is False
    assert two["job"]["spec_sha256"] == one["job"]["spec_sha256"]


def test_check_mode_tells_and_does_nothing(job: Job, systemd: Systemd) -> None:
    result = job("started", check=True, diff=True, user="not-yet-there", venv="/not/yet/there")
    assert result["changed"] is True
    assert result["job"]["state"] == "absent"
    assert [part["before_header"] for part in result["diff"]] == [
        str(job.folder / "jobs/.control/demo/config.yml") + " (absent)",
        str(job.folder / "units" / UNIT) + " (absent)",
    ]
    assert [part["before"] for part in result["diff"]] == ["", ""]
    assert "max_steps: 20" in result["diff"][0]["after"]
    assert "User=not-yet-there" in result["diff"][1]["after"]
    assert job.files() == []
    assert systemd.ran() == []


@pytest.mark.parametrize(
    ("state", "unit", "options"),
    [
        ("stopped", "active", {}),
        ("absent", "active", {}),
        ("absent", "inactive", {"purge": True}),
        ("started", "failed", {}),
        ("started", "failed", {"config": {"train": {"max_steps": 40}}}),
    ],
)
def test_check_mode_predicts_what_is_then_done(
    state: str, unit: str, options: dict[str, Any], job: Job, systemd: Systemd
) -> None:
    job("started")
    systemd.state["ActiveState"] = unit
    before = job.files()
    systemd.ran()
    predicted = job(state, check=True, **options)
    assert systemd.ran() == []
    assert job.files() == before
    real = job(state, **options)
    assert (predicted["changed"], predicted["archived"]) == (real["changed"], real["archived"])
    assert real["changed"] is True


def test_diff_of_another_launch_shows_the_unit_only(job: Job, systemd: Systemd) -> None:
    job("started")
    systemd.state["ActiveState"] = "inactive"
    (part,) = job("started", diff=True, check=True, max_restarts=2)["diff"]
    assert part["after_header"] == str(job.folder / "units" / UNIT)
    assert "--max-restarts=0" in part["before"] and "--max-restarts=2" in part["after"]


def own(job: Job, state: str = "started", *words: str, **options: Any) -> dict[str, Any]:
    """The job runs a script of the user's instead, which is there."""
    (job.folder / "mine").mkdir(exist_ok=True)
    (job.folder / "mine/train.py").touch()
    command = ["train.py", "--steps", "20", *words]
    return job(state, config=None, command=command, chdir=str(job.folder / "mine"), **options)


@pytest.fixture
def no_private_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of tests are below /tmp, of which a job has its own."""
    monkeypatch.setattr(rules, "PRIVATE_FOLDERS", ())


@pytest.mark.usefixtures("no_private_folders")
def test_a_command_is_started_watched_and_known(job: Job, systemd: Systemd) -> None:
    result = own(job, diff=True)
    assert result["changed"] is True and result["job"]["state"] == "running"
    assert result["job"]["command"] == ["train.py", "--steps", "20"]
    assert [Path(part["after_header"]).name for part in result["diff"]] == [UNIT], "no configuration of the trainer's"
    mine = ["jobs/.control/demo/job.json", "jobs/.control/demo/secret", "mine/train.py", f"units/{UNIT}"]
    assert job.files() == mine
    unit = (job.folder / "units" / UNIT).read_text()
    assert f"--no-python {job.folder}/venv/bin/python {job.folder}/mine/train.py --steps 20\n" in unit
    assert own(job)["changed"] is False
    # The launcher says at the end that the script came to its own.
    job.says(state="finished", max_steps=None)
    systemd.state["ActiveState"] = "inactive"
    assert own(job)["changed"] is False
    again = own(job, "started", "--lr=1")
    assert again["changed"] is True and again["archived"], "another command is another training"


@pytest.mark.usefixtures("no_private_folders")
@pytest.mark.parametrize(
    ("unit", "state"),
    [
        ({"ActiveState": "inactive", "ExecMainCode": "1", "ExecMainStatus": "0"}, "finished"),
        ({"ActiveState": "inactive", "ExecMainCode": "1", "ExecMainStatus": "75"}, "interrupted"),
        ({"ActiveState": "failed", "ExecMainCode": "1", "ExecMainStatus": "3"}, "failed"),
        ({"ActiveState": "failed", "ExecMainCode": "2", "ExecMainStatus": "9"}, "failed"),
        # systemd has forgotten the unit: nothing says how it ended
        ({"ActiveState": "inactive", "ExecMainCode": "0", "ExecMainStatus": "0"}, "stopped"),
    ],
)
def test_a_script_without_a_status_is_what_its_unit_says(
    unit: dict[str, str], state: str, job: Job, systemd: Systemd, run_module: Any
) -> None:
    own(job)
    systemd.state.update(unit)
    (found,) = run_module(gaudi_train_info, name="demo", **job.places)["jobs"]
    assert (found["state"], found["status"]) == (state, None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"command": ["/srv/train.py"]}, "parameters are mutually exclusive: command|config"),
        (
            {"command": ["/srv/train.py"], "config": None, "node_config": {"metrics": {"enabled": False}}},
            "parameters are mutually exclusive: command|node_config",
        ),
        ({"chdir": "/srv"}, "missing parameter(s) required by 'chdir': command"),
        ({"command": ["train.py"], "config": None}, "command begins with 'train.py', which is not an absolute path"),
        (
            {"command": ["/srv/no such/train.py"], "config": None},
            "/srv/no such/train.py is not a file on this node: copy the script of 'command' to every node of the job.",
        ),
    ],
)
def test_a_command_that_cannot_run_changes_nothing(
    options: dict[str, Any], sentence: str, job: Job, systemd: Systemd
) -> None:
    result = job("started", **options)
    assert result["failed"] is True and result.get("changed", False) is False
    assert result["msg"].startswith(sentence)
    assert job.files() == [] and systemd.ran() == []


def test_unit_that_does_not_start(job: Job, systemd: Systemd) -> None:
    systemd.start_rc = 1
    result = job("started")
    assert result["failed"] is True
    assert result["msg"] == f"Unit {UNIT} did not start: Job for the unit failed because of reasons."
    assert result["log"] == ["first", "last"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"user": "not-there"}, "User not-there does not exist on this node"),
        ({"venv": "/not/there"}, "/not/there/bin/python is missing on this node"),
        ({"processes_per_node": 16, "cards": 8}, "This node has 8 cards, too few for 16 processes"),
        ({"nodes": []}, "nodes is empty"),
        ({"name": "A"}, "name is 'A', which cannot be used"),
    ],
)
def test_what_cannot_work_fails_before_anything_changes(
    options: dict[str, Any], sentence: str, job: Job, systemd: Systemd
) -> None:
    result = job("started", **options)
    assert result["failed"] is True and result.get("changed", False) is False
    assert result["msg"].startswith(sentence)
    assert job.files() == []
    assert systemd.ran() == []


def test_info_of_one_job(job: Job, systemd: Systemd, run_module: Any) -> None:
    job("started")
    job.says(state="running", step=7)
    result = run_module(gaudi_train_info, name="demo", lines=2, **job.places)
    assert set(result) - {"invocation"} == {"changed", "jobs"}
    (found,) = result["jobs"]
    assert result["changed"] is False
    assert (found["name"], found["state"], found["status"]["step"]) == ("demo", "running", 7)
    assert found["log"] == ["first", "last"]


def test_info_of_all_jobs(job: Job, systemd: Systemd, run_module: Any) -> None:
    assert run_module(gaudi_train_info, **job.places)["jobs"] == []
    job("started")
    systemd.state["ActiveState"] = "inactive"
    job("started", name="another")
    found = run_module(gaudi_train_info, **job.places)["jobs"]
    assert [item["name"] for item in found] == ["another", "demo"]
    assert [item["log"] for item in found] == [[], []]


def test_info_of_a_job_that_is_not_there(job: Job, systemd: Systemd, run_module: Any) -> None:
    (found,) = run_module(gaudi_train_info, name="demo", **job.places)["jobs"]
    assert (found["state"], found["status"], found["spec_sha256"]) == ("absent", None, None)


def test_a_full_disk_is_told_in_one_sentence(job: Job, systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = job("started")
    assert result["failed"] is True
    assert result["msg"] == (
        "Job demo was not brought to its state on this node: [Errno 28] No space left on device; mend "
        "that and run again."
    )
    assert systemd.ran() == []
    assert not (job.folder / "jobs/.control/demo/job.json").exists()


def test_a_job_that_sends_traces_belongs_to_the_run_that_started_it_first(job: Job, systemd: Systemd) -> None:
    first, later = (f"00-{each * 32}-{each * 16}-01" for each in "ab")
    kept = job.folder / "jobs/.control/demo/trace"
    traced = {"environment": {"OTEL_TRACES_EXPORTER": "otlp"}}
    job("started", trace_parent=first)
    assert not kept.exists()  # it sends none
    systemd.state["ActiveState"] = "inactive"
    assert job("started", trace_parent=first, **traced)["changed"]
    assert kept.read_text() == f"{first}\n"
    assert f"--trace-parent={kept}" in (job.folder / f"units/{UNIT}").read_text()
    assert not job("started", trace_parent=later, **traced)["changed"]  # it runs
    systemd.state["ActiveState"] = "inactive"
    assert job("started", trace_parent=later, **traced)["changed"]
    assert kept.read_text() == f"{first}\n"
    systemd.state["ActiveState"] = "inactive"
    anew = job("started", trace_parent=later, config={"train": {"max_steps": 21}}, **traced)
    assert anew["archived"] and kept.read_text() == f"{later}\n"
    job("absent")
    assert not kept.exists()


@pytest.mark.parametrize("given", ["", "nonsense\nTRACEPARENT=x", "00-" + "0" * 32 + "-" + "a" * 16 + "-01"])
def test_what_is_no_trace_context_gets_into_no_file(given: str, job: Job, systemd: Systemd) -> None:
    job("started", trace_parent=given, environment={"OTEL_TRACES_EXPORTER": "otlp"})
    assert (job.folder / "jobs/.control/demo/trace").read_text() == "\n"
