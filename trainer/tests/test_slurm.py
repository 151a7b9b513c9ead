"""The batch script of a job: what a person reads, what bash makes of it, and what is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.slurm.script import END, batch_script
from gaudi3_scale.slurm.slurm_job import make
from gaudi3_scale.slurm.slurm_options import ASKED, FILE, NOT_CARRIED, SlurmOptions, seconds_of

LEAST: dict[str, Any] = {
    "name": "big",
    "nodes": 4,
    "processes_per_node": 8,
    "cpu": 128,
    "time": "24:00:00",
    "folder": "/shared/jobs",
}
MORE: dict[str, Any] = {
    **LEAST,
    "nodes": 1,
    "processes_per_node": 2,
    "gres": "hpu",
    "partition": "gaudi",
    "account": "team",
    "qos": "high",
    "reservation": "week",
    "constraint": "gaudi3&efa",
    "exclude": "n[7-9]",
    "exclusive": True,
    "memory": "800G",
    "options": ["--mail-type=FAIL"],
    "setup": ["module load gaudi"],
    "stop_timeout": 300,
    "threads": 4,
    "environment": {"HF_HUB_OFFLINE": 1, "LITERAL": "it's $(NAME) 1e3"},
    "interface": "eth0",
    "requeue": False,
}
JOB: dict[str, Any] = {"train": {"max_steps": 20000}}


def written(job: dict[str, Any] | None, cluster: dict[str, Any]) -> str:
    config = None if job is None else Config.model_validate(job, context={"elsewhere": True})
    return batch_script(make(config, FILE.checked(cluster)))


def test_a_whole_job_to_the_letter() -> None:
    """What a person reads. After a change, write the text into the file, and read the difference."""
    assert written(JOB, LEAST) == Path(__file__).with_name("slurm_big.txt").read_text()


def test_everything_that_was_asked_for_is_an_option_of_sbatch() -> None:
    text = written(JOB, MORE)
    assert re.findall("^#SBATCH (.*)", text, re.MULTILINE) == [
        "--job-name=big",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--cpus-per-task=128",
        "--gres=hpu:2",
        "--mem=800G",
        "--time=24:00:00",
        "--signal=USR1@300",
        "--no-requeue",
        "--open-mode=append",
        "--output=%x-%j.out",
        "--partition=gaudi",
        "--account=team",
        "--qos=high",
        "--reservation=week",
        "--constraint=gaudi3&efa",
        "--exclude=n[7-9]",
        "--exclusive",
        "--mail-type=FAIL",
    ]
    assert "scontrol requeue" not in text and "secret" not in text and "--standalone" in text
    assert "\nmodule load gaudi\n" in text
    assert "export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=295\n" in text
    assert "export GLOO_SOCKET_IFNAME=eth0\nexport HCCL_SOCKET_IFNAME=eth0\nexport OMP_NUM_THREADS=4\n" in text
    assert "rdzv_port" not in text
    assert "\nport=29400\n" in written(JOB, {**LEAST, "rdzv_port": 29400})


STAND_INS = {
    "scontrol": 'if [ "$1 $2" = "show hostnames" ]; then printf "n1\\nn2\\n"; else echo "$@" >>"$LOG"; fi',
    "srun": 'printf "%s\\n" "$@" >"$LOG.srun"; env >"$LOG.env"; exit "${CODE:-0}"',
}


def run(text: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with commands that note how they are called."""
    for name, body in STAND_INS.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    path = f"{folder}:/usr/bin:/bin"
    known = {"PATH": path, "LOG": f"{folder}/log", "SLURM_JOB_ID": "120007", "SLURM_JOB_NODELIST": "n[1-2]"}
    script = folder / "big.sbatch"
    script.write_text(text.replace("/shared/jobs", str(folder)))
    return subprocess.run(
        ["bash", script], env={**known, **environment}, cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("code", "requeue", "calls"), [(0, True, ""), (1, True, ""), (2, True, ""), (75, True, "requeue 120007\n"),
                                   (75, False, ""), (143, True, "")],
)  # fmt: skip
def test_only_an_interrupted_job_goes_back_into_the_queue(code: int, requeue: bool, calls: str, tmp_path: Path) -> None:
    done = run(written(JOB, {**LEAST, "requeue": requeue}), tmp_path, CODE=str(code))
    assert (done.returncode, done.stderr) == (code, "")
    log = tmp_path / "log"
    assert (log.read_text() if log.exists() else "") == calls


@pytest.mark.parametrize("line", ["set -e", "set -euo pipefail", "if true; then", "folder=/elsewhere"])
def test_what_lines_of_setup_set_changes_nothing_of_the_script(line: str, tmp_path: Path) -> None:
    setup = [line, "  set -e", "fi"] if line.startswith("if") else [line]
    done = run(written(JOB, {**LEAST, "setup": setup}), tmp_path, CODE="75")
    assert (done.returncode, done.stderr) == (75, "")
    assert (tmp_path / "log").read_text() == "requeue 120007\n"
    assert f"--secret-file={tmp_path}/big/secret" in (tmp_path / "log.srun").read_text().splitlines()


def test_a_cancelled_job_waits_for_its_tasks_and_does_not_go_back(tmp_path: Path) -> None:
    """Slurm sends SIGTERM to the shell while its tasks save, and they end with 75."""
    STOPPED = 'kill -TERM "$PPID"; sleep 0.3; echo saved >>"$LOG.saved"; exit 75'
    text = written(JOB, LEAST)
    before = dict(STAND_INS)
    STAND_INS["srun"] = STOPPED
    try:
        done = run(text, tmp_path)
    finally:
        STAND_INS.update(before)
    assert done.returncode == 143
    assert (tmp_path / "log.saved").read_text() == "saved\n"
    assert not (tmp_path / "log").exists()


def test_what_the_tasks_are_started_with(tmp_path: Path) -> None:
    run(written({**JOB, "cost": {"team": "a: 'b' \"c\" $(id) `id` \\"}}, LEAST), tmp_path, SLURM_RESTART_COUNT="3")
    words = (tmp_path / "log.srun").read_text().splitlines()
    assert words == [
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--export=ALL",  # also where sbatch was called with --export=NONE
        "--cpus-per-task=128",
        "/opt/gaudi3-scale/venv/bin/python",
        "-m",
        "gaudi3_scale.launch",
        "--nnodes=4",
        "--nproc-per-node=8",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=n1:20007",
        "--rdzv-id=120007-3",
        f"--secret-file={tmp_path}/big/secret",
        "--max-restarts=0",
        "--no-python",
        "/opt/gaudi3-scale/venv/bin/gaudi3-train",
        "fit",
        "--config",
        f"{tmp_path}/big/job.yml",
    ]
    secret = tmp_path / "big/secret"
    assert re.fullmatch("[0-9a-f]{64}\n", secret.read_text()) and secret.stat().st_mode & 0o777 == 0o600
    read = yaml.safe_load((tmp_path / "big/job.yml").read_text())
    assert read["cost"]["team"] == "a: 'b' \"c\" $(id) `id` \\", "nothing is expanded"
    assert (read["device"], read["output_dir"]) == ("hpu", f"{tmp_path}/big")


def test_variables_arrive_as_they_were_given(tmp_path: Path) -> None:
    run(written(JOB, MORE), tmp_path)
    found = (tmp_path / "log.env").read_text().splitlines()
    assert {"HF_HUB_OFFLINE=1", "LITERAL=it's $(NAME) 1e3", f"HABANA_LOGS={tmp_path}/big/habana_logs"} <= set(found)


def test_a_script_of_the_users_own_is_run_in_place_of_the_trainer(tmp_path: Path) -> None:
    own = {**LEAST, "command": ["train.py", "--name", "a b", "$HOME"], "chdir": "/app"}
    text = written(None, own)
    assert END not in text
    run(text, tmp_path)
    words = (tmp_path / "log.srun").read_text().splitlines()
    assert words[4] == "--chdir=/app"
    assert words[-5:] == ["/opt/gaudi3-scale/venv/bin/python", "train.py", "--name", "a b", "$HOME"]
    assert f"GAUDI3_JOB_DIRECTORY={tmp_path}/big" in (tmp_path / "log.env").read_text().splitlines()
    assert written(None, {**own, "command": ["/app/train"], "chdir": None}).count("/app/train") == 1


@pytest.mark.parametrize(
    ("job", "cluster", "said"),
    [
        ({}, {"name": "a b"}, "name is 'a b', but it has to be 1 to 63 letters"),
        ({"device": "cuda"}, {}, "device is cuda, and the Slurm launcher asks for Gaudi cards"),
        ({"device": "hpu"}, {"gres": "none"}, "device is hpu, and gres is none"),
        ({}, {"nodes": 1, "processes_per_node": 9}, "processes_per_node is 9, and a node has 8 cards"),
        ({}, {"nodes": 1, "processes_per_node": 3}, "processes_per_node is 3, where 1, 2, 4 or 8 are supported"),
        ({}, {"processes_per_node": 4}, "processes_per_node is 4 on 4 nodes, and Slurm may choose other modules"),
        ({}, {"environment": {"SLURM_JOB_ID": "1"}}, "environment has SLURM_JOB_ID, which is Slurm's"),
        ({}, {"environment": {"folder": "/a"}}, "environment has folder, which the script uses for itself"),
        ({}, {"environment": {"UID": "5"}}, "environment has UID, which the shell sets: take it out"),
        ({}, {"environment": {"SECONDS": "5"}}, "environment has SECONDS, which the shell sets: take it out"),
        ({}, {"nodes": 2**31}, "nodes is 2147483648, but it has to be less than or equal to 65533"),
        ({}, {"cpu": 2**31}, "cpu is 2147483648, but it has to be less than or equal to 65533"),
        ({}, {"name": "a" * 64}, "but it has to be 1 to 63 letters"),
        ({}, {"setup": ["export A='x", "true"]}, "bash says: line 1: unexpected EOF while looking"),
        ({}, {"setup": ["if true; then"]}, "setup is no whole piece of a shell: bash says: line 2: syntax error"),
        ({}, {"setup": ["cat <<END"]}, "setup is no whole piece of a shell: bash says: line 1: warning: here"),
        ({}, {"environment": {"HABANA_VISIBLE_MODULES": "1"}}, "which the task prolog sets: take it out"),
        ({}, {"environment": {"HF_TOKEN": "x"}}, "looks like a secret"),
        ({"output_dir": "run"}, {}, "output_dir is 'run', and the Slurm launcher needs an absolute path"),
        ({"output_dir": "/tmp/run"}, {}, "output_dir is /tmp/run, which each node has for itself"),
        ({"data": {"source": "corpus"}}, {}, "data.source is 'corpus', and the Slurm launcher needs an absolute"),
        ({}, {"time": "3"}, "time is 3, which is 180 s, and the notice comes up to 180 s"),
        ({}, {"time": 86400}, "time is 86400, but it has to be in quotes"),
        ({}, {"time": "596524:00:00"}, "has to be below 24855 days"),
        ({}, {"time": "٩٠"}, "has to be minutes, hours:minutes:seconds or days-hours"),
        ({}, {"time": "soon"}, "has to be minutes, hours:minutes:seconds or days-hours"),
        ({"interruption": {"grace": 200}}, {}, "interruption.grace is 200 s, and stop_timeout leaves"),
        ({}, {"partition": "a b"}, "partition is 'a b', but it has to be one word"),
        ({}, {"options": ["--time=1"]}, "--time follows from the other keys"),
        ({}, {"options": ["-t 1"]}, "has to begin with --"),
        ({}, {"options": ["--mail-type=FAIL --output=/a"]}, "--output follows from the other keys"),
        ({}, {"options": ["--time 5"]}, "--time follows from the other keys"),
        ({}, {"options": ["--outp=/a"]}, "--outp follows from the other keys"),
        ({}, {"options": ["--comment=a -n 3"]}, "'-n' has to begin with --"),
        ({}, {"options": ["--comment='a"]}, "has a quote without its end"),
        ({}, {"options": ["--a\n#SBATCH --uid=0"]}, "has to be one line"),
        ({}, {"folder": "/a b"}, "has to be an absolute path below /"),
        ({}, {"chdir": "/app"}, "chdir is the folder in which a command runs"),
        ({}, {"spares": 1}, "spares is set, and the Slurm launcher does not carry it"),
        ({}, {"partitions": "a"}, "Unknown key 'partitions' of the cluster: did you mean 'partition'?"),
        ({"tracking": {"mlflow_uri": "https://a:b@store.example"}}, {}, "has a password in its address"),
        (None, {}, "A job is a job file, or a command"),
    ],
)  # fmt: skip
def test_what_slurm_would_notice_too_late_is_refused(
    job: dict[str, Any] | None, cluster: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        written(job, {**LEAST, **cluster})


def test_all_that_is_missing_is_asked_for_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        FILE.checked({})
    assert str(refused.value).splitlines() == [f"{key} is not given: {ASKED[key]}." for key in ASKED]
    assert not set(ASKED) & set(NOT_CARRIED)


def test_texts_of_digits_are_what_was_written(tmp_path: Path) -> None:
    """YAML takes them for other numbers: an account 56, a time of 86400, a release 2.1."""
    file = tmp_path / "cluster.yml"
    file.write_text("account: 0070\ntime: 24:00:00\nenvironment: {BUILD: 1_000, PORT: 8080, CUT: 2.10}\ncpu: 16\n")
    given = FILE.checked({**FILE.values(file, [], {"name": "a", "nodes": 1}), "processes_per_node": 8, "folder": "/s"})
    assert (given.account, given.time, given.cpu) == ("0070", "24:00:00", 16)
    assert given.environment == {"BUILD": "1_000", "PORT": "8080", "CUT": "2.10"}


@pytest.mark.parametrize(("given", "time"), [("24:00:00", "24:00:00"), ("90", "90"), ('"2-12"', "2-12")])
def test_a_time_of_the_command_line_needs_no_quotes_within_quotes(given: str, time: str) -> None:
    """The sentence that asks for it shows it in quotes, which the shell takes away."""
    assert 'such as --set time="24:00:00"' in ASKED["time"]
    found = FILE.values(None, [f"time={given}", "account=0070", "memory=1_0", "nodes=2"], {})
    assert found == {"time": time, "account": "0070", "memory": "1_0", "nodes": 2}


def test_the_template_has_every_key_and_can_be_filled_in() -> None:
    text = FILE.template()
    for name in SlurmOptions.model_fields:
        assert re.search(f"^#?{name}: ", text, re.MULTILINE), name
    filled = yaml.safe_load(text)
    assert set(filled) == set(ASKED)
    FILE.checked({**filled, "name": "a", "nodes": 1, "processes_per_node": 8, "cpu": 8})


def test_times_as_sbatch_reads_them() -> None:
    assert [seconds_of(each) for each in ("5:30", "1-0:30:15", "0-1", "100:00:00")] == [330, 88215, 3600, 360000]


def test_the_command_writes_the_script_and_leaves_others_alone(tmp_path: Path) -> None:
    job, cluster = tmp_path / "job.yml", tmp_path / "cluster.yml"
    job.write_text("train: {max_steps: 20000}\n")
    cluster.write_text('time: "24:00:00"\nfolder: /shared/jobs\ncpu: 128\nprocesses_per_node: 8\n')
    words = ["slurm", str(job), "--cluster", str(cluster), "--name", "big", "--nodes", "4", "--to", str(tmp_path / "o")]
    done = CliRunner().invoke(app, words)
    path = tmp_path / "o/big.sbatch"
    assert done.output == f"check: sbatch --test-only {path}\nstart: sbatch {path}\n"
    assert path.read_text() == written(JOB, LEAST)
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, words[:-2]).output == path.read_text()
    path.write_text("#!/bin/bash\nmine\n")
    with pytest.raises(ConfigError, match="was not written by this command"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert path.read_text() == "#!/bin/bash\nmine\n"
    with pytest.raises(ConfigError, match="JOB is missing"):
        CliRunner().invoke(app, ["slurm"], catch_exceptions=False)
