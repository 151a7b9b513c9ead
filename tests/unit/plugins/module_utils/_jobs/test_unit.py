"""The unit, the configuration and the progress line of a job, to the letter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.config_file import config_text
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare, launch_argv
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.log import last_words
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.status import Status, progress_line
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.yaml_text import yaml_text

FOLDER = "/var/lib/gaudi3-scale/jobs/demo"
SPEC = JobSpec(
    name="demo",
    config={"train": {"max_steps": 20}},
    nodes=("gaudi-1", "gaudi-2"),
    head_address="10.89.78.11",
    processes_per_node=8,
    max_restarts=1,
    threads=2,
    environment={"B": 'say "50 %"', "A": "1"},
    environment_files=("/etc/gaudi3-scale/fabric.env",),
)
UNIT = f"""\
# Written by gaudi3.scale.gaudi_train; the next start of the job overwrites what is changed here.
[Unit]
Description=Gaudi 3 training job demo
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
AssertPathExists=!/var/lib/gaudi3-scale/health/fence.json
AssertPathExists=!/run/gaudi3-scale/fence

[Service]
ExecStartPre=-+/bin/sh -c "echo \\"$$INVOCATION_ID\\" >\\"$$1.part\\" && mv -f \\"$$1.part\\" \\"$$1\\" \
|| rm -f \\"$$1\\"" \
sh /var/lib/gaudi3-scale/jobs/.control/demo/invocation.%H
Type=exec
User=gaudi3-scale
WorkingDirectory=/var/lib/gaudi3-scale/jobs/demo
CacheDirectory=gaudi3-scale
Environment=HABANA_LOGS=/var/lib/gaudi3-scale/jobs/demo/habana_logs
Environment=OMP_NUM_THREADS=2
Environment=PYTHONUNBUFFERED=1
Environment=TORCH_ELASTIC_SHUTDOWN_TIMEOUT=115
Environment=XDG_CACHE_HOME=/var/cache/gaudi3-scale
EnvironmentFile=-/etc/gaudi3-scale/runtime.env
EnvironmentFile=-/etc/gaudi3-scale/fabric.env
ExecStart=/usr/bin/env A=1 "B=say \\"50 %%\\"" /opt/gaudi3-scale/venv/bin/python -m gaudi3_scale.launch \
--status=/var/lib/gaudi3-scale/jobs/demo/status.json \
--secret-file=/var/lib/gaudi3-scale/jobs/.control/demo/secret --nnodes=2 --nproc-per-node=8 \
--rdzv-backend=c10d --rdzv-endpoint=10.89.78.11:29400 --rdzv-id=demo-{SPEC.sha256[:8]} --max-restarts=1 \
--no-python /opt/gaudi3-scale/venv/bin/gaudi3-train fit --config /var/lib/gaudi3-scale/jobs/.control/demo/config.yml
Restart=no
SuccessExitStatus=75
RestartPreventExitStatus=75
KillMode=mixed
TimeoutStopSec=120
OOMScoreAdjust=500
OOMPolicy=continue
LimitMEMLOCK=infinity
LimitNOFILE=65536
TasksMax=infinity
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full
ProtectHome=read-only
RestrictSUIDSGID=yes
LockPersonality=yes
StandardOutput=journal
StandardError=journal
SyslogIdentifier=gaudi-train-demo
"""


def test_unit() -> None:
    assert unit_text(SPEC, NodeShare(FOLDER)) == UNIT


OWN = JobSpec(
    name="own",
    config={},
    command=("train.py", "--steps", "20", "--name=50 % $HOME", ";"),
    chdir="/srv/my work",
    nodes=("gaudi-1",),
    head_address="10.89.78.11",
)


def test_unit_of_a_command() -> None:
    """The same unit around another program, in the user's folder, told of the job's folder by a variable."""
    folder = "/var/lib/gaudi3-scale/jobs/own"
    plain = unit_text(replace(OWN, command=(), chdir=None), NodeShare(folder)).splitlines()
    unit = unit_text(OWN, NodeShare(folder)).splitlines()
    assert [line for line in unit if line not in plain] == [
        "WorkingDirectory=/srv/my work",
        f"Environment=GAUDI3_JOB_DIRECTORY={folder}",
        f"ExecStart=/opt/gaudi3-scale/venv/bin/python -m gaudi3_scale.launch --status={folder}/status.json "
        f"--say-ending --secret-file=/var/lib/gaudi3-scale/jobs/.control/own/secret --nnodes=1 "
        f"--nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=10.89.78.11:29400 "
        f"--rdzv-id=own-{OWN.sha256[:8]} --max-restarts=0 --no-python /opt/gaudi3-scale/venv/bin/python "
        '"/srv/my work/train.py" --steps 20 "--name=50 %% $$HOME" ";"',
    ]
    gone = [line.split("=")[0] for line in plain if line not in unit]
    assert gone == ["WorkingDirectory", "ExecStart"]


def test_a_job_keeps_its_data_while_it_runs() -> None:
    kept = replace(SPEC, data_sets=("/data/755fdfaaf01f/", "/my data/50%"))
    unit = unit_text(kept, NodeShare(FOLDER)).splitlines()
    one, other = (f"{folder}.users/gaudi-train-demo.service" for folder in ("/data/.755fdfaaf01f", "/my data/.50%%"))
    plain = unit_text(replace(kept, data_sets=()), NodeShare(FOLDER)).splitlines()
    assert [line for line in unit if line not in plain and not line.startswith("ExecStart=")] == [
        f"ExecStartPre=-+/usr/bin/install -D -m 644 /dev/null {one}",
        f"ExecStopPost=-+/bin/rm -f {one}",
        f'ExecStartPre=-+/usr/bin/install -D -m 644 /dev/null "{other}"',
        f'ExecStopPost=-+/bin/rm -f "{other}"',
    ]


def test_a_job_that_sends_traces_learns_what_its_trace_belongs_to() -> None:
    option = "--trace-parent=/var/lib/gaudi3-scale/jobs/.control/llama/trace"
    traced = replace(SPEC, environment={"OTEL_TRACES_EXPORTER": "otlp"})
    assert option in unit_text(traced, NodeShare("/var/lib/gaudi3-scale/jobs/llama"))
    assert "--trace-parent" not in unit_text(SPEC, NodeShare("/var/lib/gaudi3-scale/jobs/llama"))


def test_a_command_without_a_folder_runs_in_the_jobs_own() -> None:
    unit = unit_text(replace(OWN, command=("/srv/train.py",), chdir=None), NodeShare(FOLDER))
    assert f"WorkingDirectory={FOLDER}\n" in unit


@pytest.mark.parametrize(("script", "words"), [("a.py", ["PYTHON", "/srv/a.py"]), ("a.sh", ["/srv/a.sh"])])
def test_python_runs_what_is_python_and_the_kernel_what_is_not(script: str, words: list[str]) -> None:
    argv = launch_argv(replace(OWN, command=(script, "x.py"), chdir="/srv"), NodeShare(FOLDER))
    expected = [OWN.venv + "/bin/python" if word == "PYTHON" else word for word in words]
    assert argv[argv.index("--no-python") + 1 :] == [*expected, "x.py"]


@pytest.mark.parametrize(("is_head", "word"), [(True, "true"), (False, "false")])
def test_a_node_that_knows_its_place_does_not_ask_the_resolver(is_head: bool, word: str) -> None:
    argv = launch_argv(SPEC, NodeShare(FOLDER, address="10.89.78.12", is_head=is_head))
    plain = launch_argv(SPEC, NodeShare(FOLDER))
    assert [item for item in argv if item not in plain] == [
        f"--rdzv-conf=is_host={word}",
        "--local-addr=10.89.78.12",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"min_nodes": 2}, ["--nnodes=2"]),
        ({"min_nodes": 1}, ["--replace", "--nnodes=1:2"]),
        ({"spares": 1}, ["--replace", "--nnodes=1"]),
        ({"nodes": ("a", "b", "c", "d"), "spares": 1, "min_nodes": 2}, ["--replace", "--nnodes=2:3"]),
    ],
)
def test_a_job_that_replaces_lost_nodes_says_how_many_work(change: dict[str, Any], words: list[str]) -> None:
    argv = launch_argv(replace(SPEC, **change), NodeShare(FOLDER))
    assert [word for word in argv if word.startswith(("--nnodes", "--replace"))] == words


def test_an_ipv6_head_is_put_in_brackets() -> None:
    argv = launch_argv(replace(SPEC, head_address="fd00::1"), NodeShare(FOLDER))
    assert "--rdzv-endpoint=[fd00::1]:29400" in argv


def test_configuration_of_a_node() -> None:
    share = NodeShare(FOLDER, config={"metrics": {"address": "10.89.78.11"}, "train": {"log_every": 5}})
    assert config_text(SPEC, share) == (
        "# Written by gaudi3.scale.gaudi_train; the next start of the job overwrites what is changed here.\n"
        'metrics:\n  address: "10.89.78.11"\n'
        'output_dir: "/var/lib/gaudi3-scale/jobs/demo"\n'
        "train:\n  log_every: 5\n  max_steps: 20\n"
    )


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1e-05, "b": 3e20, "c": 0.1, "d": 2.5e-7, "e": -1.0},
        {"no": "no", "none": None, "yes": True, "word": "a: b # c", "empty": "", "unicode": "äß\n\t"},
        {"list": [1, "2", [3, {"x": 4}], {"y": {"z": []}}], "nothing": {}, "odd key": 1, "1": 2},
        {"deep": {"er": {"est": [[1, 2], [3]]}}},
    ],
)
def test_yaml_comes_back_as_it_was(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


STATUS = {"step": 40, "max_steps": 200, "loss": 2.9132, "tokens_per_second": 5119.6, "device": "cpu"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({}, "gaudi-1: step 40/200, loss 2.913, 5,120 tokens/s (cpu)"),
        ({"tokens_per_second": None}, "gaudi-1: step 40/200, loss 2.913 (cpu)"),
        ({"step": 0, "loss": None, "tokens_per_second": None}, None),
        ({"device": None, "tokens_per_second": 1234567.8}, "gaudi-1: step 40/200, loss 2.913, 1,234,568 tokens/s"),
        (
            {"device": "hpu", "hardware_name": "GAUDI3", "simulated": False},
            "gaudi-1: step 40/200, loss 2.913, 5,120 tokens/s (GAUDI3)",
        ),
        (
            {"device": "hpu", "hardware_name": None, "simulated": True},
            "gaudi-1: step 40/200, loss 2.913, 5,120 tokens/s (simulated hpu)",
        ),
        (
            # 160 steps are left, of 4,096 tokens each.
            {"tokens": 163840, "device": None},
            "gaudi-1: step 40/200, loss 2.913, 5,120 tokens/s, 2 min left",
        ),
        ({"tokens": 163840, "step": 200, "device": None}, "gaudi-1: step 200/200, loss 2.913, 5,120 tokens/s"),
        ({"tokens": 163840, "tokens_per_second": 0, "device": None}, "gaudi-1: step 40/200, loss 2.913, 0 tokens/s"),
        ({"step": None}, None),
        ({"max_steps": None}, "gaudi-1: step 40, loss 2.913, 5,120 tokens/s (cpu)"),
    ],
)
def test_progress(change: dict[str, Any], line: str | None) -> None:
    assert progress_line("gaudi-1", Status.of({**STATUS, **change})) == line


def test_a_line_of_the_demo_fits_a_terminal_however_long_the_job_takes() -> None:
    longest = {"step": 100, "loss": 9.999, "tokens_per_second": 99999.0, "tokens": 2 * 10**8, "device": "hpu"}
    line = progress_line("gaudi-1", Status.of({**STATUS, **longest, "hardware_name": None, "simulated": True}))
    assert line == "gaudi-1: step 100/200, loss 9.999, 99,999 tokens/s, 33 min left (simulated hpu)"
    assert len(line) <= 80


def test_a_status_cannot_reach_the_operators_terminal() -> None:
    line = progress_line("gaudi-1", Status.of({"step": 1, "max_steps": 2, "device": "hpu\x1b[2J\x07\u202e"}))
    assert line == r"gaudi-1: step 1/2 (hpu\x1b[2J\x07\u202e)"


def test_no_progress_without_a_status() -> None:
    assert progress_line("gaudi-1", None) is None


TORCHRUN = [
    "E1120 22:15:57 764 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0",
    "Traceback (most recent call last):",
    "    raise ChildFailedError(",
    "============================================================",
    "gaudi3-train FAILED",
    "============================================================",
]


def test_last_words_are_the_trainers_not_torchruns() -> None:
    log = ["step 1", "ValueError: no data", *TORCHRUN, "a.service: Failed with result 'exit-code'."]
    assert last_words(log, 3) == ["ValueError: no data", TORCHRUN[0], "a.service: Failed with result 'exit-code'."]


def test_a_log_without_a_failure_is_kept_as_it_is() -> None:
    log = ["=====", "step 1", "step 2"]
    assert last_words(log, 5) == log
    assert last_words(log, 1) == ["step 2"]
