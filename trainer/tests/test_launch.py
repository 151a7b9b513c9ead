"""The launcher is torchrun's agent with a few methods of ours: they have to be there, in the form they are used."""

from __future__ import annotations

import inspect
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import free_port, kill, wait_for, workers
from old_launchers import VERSIONS
from torch.distributed import run as torchrun
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.api import PContext, _terminate_process_handler
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.launcher import api
from zygote import Client, Started

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.launch import torchrun as launching
from gaudi3_scale.launch.outcome import JobOutcome, code_of


def test_torchrun_is_as_the_launcher_takes_it_to_be() -> None:
    assert "LocalElasticAgent(" in inspect.getsource(api.launch_agent)
    assert list(inspect.signature(LocalElasticAgent._monitor_workers).parameters) == ["self", "worker_group"]
    assert list(inspect.signature(LocalElasticAgent._start_workers).parameters) == ["self", "worker_group"]
    assert "self._remaining_restarts > 0" in inspect.getsource(LocalElasticAgent._invoke_run)
    assert "next_rendezvous" in vars(dynamic_rendezvous.DynamicRendezvousHandler)
    handler = inspect.getsource(dynamic_rendezvous.DynamicRendezvousHandler)
    for name in ("_op_executor", "_state_holder", "_this_node", "def _stop_heartbeats", "def _get_deadline"):
        assert name in handler
    assert "redundancy_list" in inspect.getsource(dynamic_rendezvous._RendezvousState)
    shared = inspect.getsource(dynamic_rendezvous.DynamicRendezvousHandler.next_rendezvous)
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" in shared
    assert list(inspect.signature(PContext.close).parameters) == ["self", "death_sig", "timeout"]
    assert list(inspect.signature(_terminate_process_handler).parameters) == ["signum", "frame"]


def test_the_signals_are_torchruns_and_sigusr1() -> None:
    default = torchrun.get_args_parser().get_default("signals_to_handle")
    if default is None:
        pytest.skip("this torch has no option for signals")
    assert f"{default},SIGUSR1" == launching.SIGNALS


OPTIONS = torchrun.get_args_parser().format_help()
IMITATED = [
    version
    for version, about in VERSIONS.items()
    if (not about.signals_option or "--signals-to-handle" in OPTIONS)
    and (not about.shutdown_option or "--shutdown-timeout" in OPTIONS)
]
"""The installed torch can be made to behave as an older one, not as a newer one."""


def start(
    warm: Client, folder: Path, version: str, patience: int, *seconds: float, slow: float = 0, **more: str
) -> Started:
    """As many workers as there are numbers, under the launcher with the torchrun of that version.

    It takes `slow` seconds to start each.
    """
    arguments = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=test"]
    arguments += [f"--nproc-per-node={len(seconds)}", "--monitor-interval=0.1", "--no-python", "patient_worker"]
    arguments += [str(folder), *map(str, seconds)]
    environment = {"OLD_TORCH": version, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(patience)}
    environment["SLOW_START"] = str(slow)
    return warm.start("launch", arguments, environment | more, folder / "log")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
@pytest.mark.parametrize("version", IMITATED)
def test_a_signal_to_the_launcher_leaves_the_workers_their_time_on_every_torch(
    version: str, number: signal.Signals, warm: Client, tmp_path: Path
) -> None:
    launcher = start(warm, tmp_path, version, 30, 2.0)
    wait_for((tmp_path / "ready-0").exists, "worker", lambda: launcher.poll() is not None)
    kill(launcher.pid, number)
    assert launcher.wait(120) == 75, launcher.output()
    assert (tmp_path / "saved-0").read_text() == number.name


@pytest.mark.parametrize(("version", "number"), [("2.9.1", signal.SIGUSR1), ("2.13.0", signal.SIGTERM)])
def test_a_signal_that_comes_while_workers_are_started_reaches_them_all(
    version: str, number: signal.Signals, warm: Client, tmp_path: Path
) -> None:
    launcher = start(warm, tmp_path, version, 30, 0.1, 0.1, slow=0.5)
    wait_for((tmp_path / "ready-0").exists, "worker", lambda: launcher.poll() is not None)
    kill(launcher.pid, number)
    assert launcher.wait(120) == 75, launcher.output()
    assert [(tmp_path / f"saved-{rank}").read_text() for rank in (0, 1)] == [number.name] * 2


@pytest.mark.parametrize("journal", [True, False])
def test_the_journal_is_told_which_process_is_which_rank(
    journal: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if journal:
        monkeypatch.setenv("JOURNAL_STREAM", "9:9")
    else:
        monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    launching._name_processes([70, 71], [8, 9])
    assert capfd.readouterr().err == ("gaudi3-launch: ranks 8 to 9 are processes 70 71\n" if journal else "")


def test_the_launcher_names_its_processes_in_the_journal(warm: Client, tmp_path: Path) -> None:
    launcher = start(warm, tmp_path, IMITATED[-1], 30, 0.1, 0.1, JOURNAL_STREAM="9:9")
    named = "gaudi3-launch: ranks 0 to 1 are processes "
    wait_for((tmp_path / "ready-1").exists, "worker", lambda: launcher.poll() is not None)
    # A worker may be ready before the launcher has come to it.
    wait_for(lambda: named in launcher.output(), "names", lambda: launcher.poll() is not None)
    kill(launcher.pid, signal.SIGTERM)
    assert launcher.wait(120) == 75, launcher.output()


@pytest.mark.parametrize("version", IMITATED)
def test_a_worker_that_leaves_first_leaves_the_others_their_time(version: str, warm: Client, tmp_path: Path) -> None:
    launcher = start(warm, tmp_path, version, 30, -0.1, 2.0)
    assert launcher.wait(120) == 75, launcher.output()
    assert (tmp_path / "saved-1").read_text() == "SIGTERM"


def test_a_worker_that_takes_longer_than_it_was_given_is_killed(warm: Client, tmp_path: Path) -> None:
    launcher = start(warm, tmp_path, "2.9.1", 2, 20.0)
    wait_for((tmp_path / "ready-0").exists, "worker", lambda: launcher.poll() is not None)
    kill(launcher.pid, signal.SIGTERM)
    assert 1.5 < wait_for(lambda: launcher.poll() is not None, "end", seconds=10) < 8
    assert not (tmp_path / "saved-0").exists()


@pytest.mark.parametrize("version", IMITATED)
def test_a_worker_that_is_stopped_is_woken_to_end_as_it_is_told(version: str, warm: Client, tmp_path: Path) -> None:
    launcher = start(warm, tmp_path, version, 10, 0.1)
    wait_for((tmp_path / "ready-0").exists, "worker", lambda: launcher.poll() is not None)
    (stopped,) = workers(launcher.pid)
    kill(stopped, signal.SIGSTOP)
    kill(launcher.pid, signal.SIGTERM)
    assert launcher.wait(120) == 75, launcher.output()
    assert (tmp_path / "saved-0").read_text() == "SIGTERM"


@pytest.mark.parametrize("given", ["soon", "-1", "2.5"])
def test_a_time_that_is_no_number_is_refused_in_a_sentence(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", given)
    with pytest.raises(ConfigError) as refused:
        launching._seconds(None)
    sentence = f"TORCH_ELASTIC_SHUTDOWN_TIMEOUT is {given!r}: give a whole number of seconds, or unset it."
    assert str(refused.value) == sentence
    assert launching._seconds(45) == 45


def test_what_follows_the_script_is_the_scripts() -> None:
    ours = ["--replace", "--status=/a/status.json", "--say-ending", "--nnodes=1:2", "--no-python"]
    theirs = ["/srv/train.py", "--status=mine", "--replace", "--nnodes=9", "--", "x"]
    args, _ = launching._parse(torchrun, [*ours, *theirs])
    assert (args.replace, args.status, args.say_ending, args.nnodes) == (True, Path("/a/status.json"), True, "1:2")
    assert [args.training_script, *args.training_script_args] == theirs
    plain, _ = launching._parse(torchrun, theirs)
    assert (plain.replace, plain.status, plain.say_ending) == (False, None, False)


SCRIPT = """
import json, os, signal, sys, time
rank = os.environ["RANK"]
def together():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which the launcher sends to the other as soon as one has ended
    open(f"here-{rank}", "w").close()
    while not all(os.path.exists(f"here-{each}") for each in "01"): time.sleep(0.01)
def say(**more):  # of two that write at once, each whole
    with open(f"draft-{rank}", "w") as draft:
        json.dump({"schema": 1, "step": 7, "updated_at": time.time(), **more}, draft)
    os.replace(f"draft-{rank}", "status.json")
{"finished": lambda: None,
 "failed": lambda: rank == "0" and sys.exit(3),
 "refused": lambda: (rank == "1" and time.sleep(60), sys.exit(2)),
 "told": lambda: (say(state="failed", error="no data"), sys.exit(1)),
 "killed": lambda: rank == "0" and os.kill(os.getpid(), signal.SIGKILL),
 "left": lambda: (together(), say(state="running"), sys.exit(75)),
 "waits": lambda: (open(f"ready-{rank}", "w").close(), time.sleep(60)),
}[sys.argv[1]]()
"""


@pytest.mark.parametrize(
    ("what", "code", "expected"),
    [
        ("finished", 0, {"state": "finished", "error": None}),
        ("failed", 1, {"state": "failed", "error": "process 0 of this node ended with exit status 3"}),
        ("refused", 2, {"state": "failed", "error": "process 0 of this node ended with exit status 2"}),
        ("killed", 1, {"state": "failed", "error": "process 0 of this node was ended by SIGKILL"}),
        ("told", 1, {"state": "failed", "error": "no data", "step": 7}),
        ("left", 75, {"state": "interrupted", "error": None, "step": 7}),
        (
            "waits",
            128 + signal.SIGTERM,
            {
                "state": "failed",
                "error": "SIGTERM was sent to the launcher, and not all processes ended with 75 (interrupted): give "
                "the Trainer an InterruptionCallback to save a checkpoint first",
            },
        ),
    ],
)
def test_the_launcher_says_how_a_script_ended(
    what: str, code: int, expected: dict[str, Any], warm: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, status = tmp_path / "script.py", tmp_path / "status.json"
    script.write_text(f"import os\nos.chdir({str(tmp_path)!r})\n{SCRIPT}")
    status.write_text(json.dumps({"state": "finished", "step": 99, "updated_at": 1.0}))
    arguments = [f"--status={status}", "--say-ending", "--rdzv-backend=c10d", "--rdzv-id=test", "--nproc-per-node=2"]
    arguments += [f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--monitor-interval=0.1", "--no-python", str(script)]
    launcher = warm.start("launch", [*arguments, what], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "10"}, tmp_path / "log")
    if what == "waits":
        both = [tmp_path / "ready-0", tmp_path / "ready-1"]
        wait_for(lambda: all(path.exists() for path in both), "workers", lambda: launcher.poll() is not None)
        assert json.loads(status.read_text())["state"] == "starting"
        kill(launcher.pid, signal.SIGTERM)
    assert launcher.wait(120) == code, launcher.output()
    found = json.loads(status.read_text())
    assert found.pop("updated_at") >= found.pop("started_at", 0) > 1.0
    found.pop("invocation", None)  # where a unit of systemd runs the tests
    assert {"schema": 1, **expected} == found


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ({75}, 75),
        ({2}, 2),
        ({2, -signal.SIGTERM}, 2),
        ({2, 75, -signal.SIGTERM}, 2),
        ({2, 1}, 1),
        ({2, -signal.SIGKILL}, 1),
        ({75, -signal.SIGTERM}, 1),
        ({-signal.SIGTERM}, 1),
    ],
)
def test_the_exit_code_of_a_launcher_is_that_of_the_processes_that_ended_by_themselves(
    codes: set[int], code: int
) -> None:
    assert code_of(codes) == code


def test_what_this_run_wrote_counts_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status.json"
    monkeypatch.setenv("INVOCATION_ID", "2f1d")
    ours = {"schema": 1, "state": "failed", "error": "no data", "updated_at": 1.0, "invocation": "2f1d"}
    for written, said in ((ours, "no data"), ({**ours, "invocation": "another"}, "process 0 ended")):
        outcome = JobOutcome(status, own=True)
        status.write_text(json.dumps(written))
        outcome.end(1, "process 0 ended")
        assert json.loads(status.read_text())["error"] == said
