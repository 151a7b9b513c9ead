"""Who may ask a job to leave, and what is heard of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import metadata_servers as servers
import pytest
from conftest import PACKAGES, wait_for

from gaudi3_scale.config import load
from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.interruption import Notice, Notices
from gaudi3_scale.interruption.cloud_notice import Aws, Azure, Gcp, watch

IN_TWO_MINUTES = {"action": "terminate", "time": "2030-01-01T00:02:00Z"}


def script(body: str, **environment: str) -> subprocess.Popen[str]:
    """A process that listens, and does something."""
    start = """
        import os, signal, sys, threading, time
        from gaudi3_scale.config.interruption import InterruptionConfig
        from gaudi3_scale.interruption import Notices
        notices = Notices(InterruptionConfig(grace=float(os.environ.get("GRACE", "30"))))
        notices.start()
        print("ready", flush=True)
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(body)],
        env={**os.environ, "PYTHONPATH": PACKAGES, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_is_a_notice_with_the_time_its_sender_gives(number: signal.Signals, tmp_path: Path) -> None:
    process = script(
        """
        while notices.notice is None:
            time.sleep(0.01)
        print(notices.notice.source, round(notices.notice.remaining()))
        """,
        GRACE="0",
        TORCH_ELASTIC_SHUTDOWN_TIMEOUT="113",
        PYTHONPATH=torch_of(tmp_path, knows=True),
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=30)[0] == f"{number.name} 110\n"
    assert process.returncode == 0


def torch_of(folder: Path, knows: bool) -> str:
    """A folder for PYTHONPATH with a torch whose launcher reads the variable, or does not."""
    launcher = folder / "torch" / "distributed" / "launcher" / "api.py"
    launcher.parent.mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("raise ImportError('nobody may import torch to find this out')")
    launcher.write_text('shutdown = os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")\n' if knows else "pass\n")
    return f"{folder}:{PACKAGES}"


@pytest.mark.parametrize(
    ("knows", "ours", "variable", "seconds"),
    [
        (True, False, "113", 110),
        (False, False, "113", 27),  # it waits the 30 seconds that are written in its source, whatever one asks for
        (False, False, "20", 27),
        (False, True, "113", 110),  # the launcher of gaudi3_scale keeps to it on every torch
        (True, True, "40", 37),
        (True, False, None, 27),
        (False, True, None, 27),
    ],
)
def test_the_time_that_a_process_has_is_what_its_launcher_keeps_to(
    knows: bool, ours: bool, variable: str | None, seconds: int, tmp_path: Path
) -> None:
    environment = {"GRACE": "0", "PYTHONPATH": torch_of(tmp_path, knows), "TORCHELASTIC_RUN_ID": "test"}
    environment |= {"GAUDI3_LAUNCH_LEAVING": str(tmp_path / "leaving")} if ours else {}
    environment |= {} if variable is None else {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": variable}
    assert script("print(round(notices.grace()))", **environment).communicate(timeout=30)[0] == f"ready\n{seconds}\n"


def test_two_signals_at_once_are_one_and_a_later_one_ends_a_process_that_is_stuck_in_c() -> None:
    process = script("import ctypes\nwhile True: ctypes.CDLL(None).sleep(60)  # each signal ends one sleep only")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGUSR1)
    time.sleep(1.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 75
    assert errors == (
        "gaudi3-train: leaving at once, as a second signal (SIGTERM) asks; started again, the job goes on from its "
        "newest checkpoint\n"
    )


def test_a_process_that_never_comes_to_a_step_boundary_is_gone_at_the_deadline() -> None:
    process = script("time.sleep(60)\ntime.sleep(60)", GRACE="1")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 75
    assert "leaving at once, since the deadline of the notice has come; " in errors


def test_a_child_that_is_told_to_end_is_no_notice_and_ends() -> None:
    process = script(
        """
        child = os.fork()
        if child == 0:
            time.sleep(60)
        time.sleep(0.2)
        os.kill(child, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        time.sleep(0.2)
        print(notices.notice)
        """
    )
    assert process.communicate(timeout=30)[0] == "ready\n-15\nNone\n"


def test_the_end_of_the_launcher_is_a_notice() -> None:
    """The process is a grandchild; what is between ends."""
    inner = (
        "import time\n"
        "from gaudi3_scale.config.interruption import InterruptionConfig\n"
        "from gaudi3_scale.interruption import Notices\n"
        "notices = Notices(InterruptionConfig())\n"
        "notices.start()\n"
        "print('ready', flush=True)\n"
        "while notices.notice is None:\n"
        "    time.sleep(0.01)\n"
        "print(notices.notice.source, notices.notice.reason, flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": PACKAGES, "TORCHELASTIC_RUN_ID": "test"}
    outer = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {inner!r}]); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", outer], env=environment, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.kill()
    assert process.stdout.read() == "launcher the launcher of this process is gone\n"
    process.wait()


def test_a_touched_file_is_a_notice_unless_it_was_touched_before(tmp_path: Path) -> None:
    path = tmp_path / "leave"
    path.touch()
    os.utime(path, (1, 1))
    notices = Notices(InterruptionConfig(sources=["file"], file=path, poll=0.1, grace=40))
    notices.start()
    try:
        time.sleep(0.4)
        assert notices.notice is None
        path.write_text("maintenance of rack 7\n")
        os.utime(path, (2, 2))  # by a node whose clock is slow
        wait_for(lambda: notices.notice is not None, "notice")
    finally:
        notices.stop()
    assert notices.notice is not None and notices.notice.source == "file"
    assert notices.notice.reason == f"{path} was touched (maintenance of rack 7)"
    assert 38 < notices.notice.remaining() <= 40


def test_of_several_notices_the_first_counts_with_the_earliest_deadline() -> None:
    notices = Notices(InterruptionConfig())
    now = time.time()
    for notice in (
        Notice("aws", "rebalance"),
        Notice("aws", "terminate", now + 120),
        Notice("SIGTERM", "x", now + 300),
    ):
        notices.tell(notice)
    assert notices.notice == Notice("aws", "rebalance", now + 120)


def test_a_file_without_its_source_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sources is \['signal'\] and file is /tmp/leave, but the source file and"):
        load(None, ["interruption.file=/tmp/leave"])


def heard(service: servers.Service, **settings: Any) -> tuple[list[Notice], list[str], Callable[[], None]]:
    """Watch a service: notices, what was said, and a wait for the first notice."""
    name = type(service).__name__.lower()
    config = InterruptionConfig.model_validate(
        {"sources": [name], "poll": 0.1, f"{name}_endpoint": service.endpoint, **settings}
    )
    notices: list[Notice] = []
    said: list[str] = []
    watch(config, notices.append, said.append)
    return notices, said, lambda: void(wait_for(lambda: bool(notices), "notice"))


def void(_: object) -> None:
    """For its effect."""


def test_aws_says_what_and_when_to_who_has_a_token_and_renews_one_that_ended() -> None:
    with servers.serving(servers.Aws()) as service:
        notices, said, wait = heard(service)
        wait_for(lambda: service.requests.count("GET /latest/meta-data/spot/instance-action") >= 2, "looks")
        assert service.requests.count("PUT /latest/api/token") == 1
        service.tokens.clear()  # it has expired
        wait_for(lambda: service.requests.count("PUT /latest/api/token") == 2, "another token")
        service.change(action=IN_TWO_MINUTES)
        wait()
    assert notices == [Notice("aws", "AWS will terminate this spot instance at 2030-01-01T00:02:00Z", 1893456120.0)]
    assert said == []
    assert not any("rebalance" in request for request in service.requests)


def test_aws_recommendation_counts_if_it_is_wanted() -> None:
    with servers.serving(servers.Aws()) as service:
        service.advice = {"noticeTime": "2030-01-01T00:00:00Z"}
        notices, _, wait = heard(service, rebalance=True)
        wait()
    assert notices == [Notice("aws", "AWS recommends since 2030-01-01T00:00:00Z to leave this spot instance")]


def test_a_service_that_fails_or_is_slow_is_no_notice_is_said_once_and_asked_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gaudi3_scale.interruption.cloud_notice.TIMEOUT", 0.3)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # never asked through a proxy
    with servers.serving(servers.Aws()) as service:
        service.failures = 2
        _, said, wait = heard(service)
        wait_for(lambda: len(said) == 2, "recovery")
        service.delay = 0.6
        wait_for(lambda: len(said) == 3, "a slow answer")
        service.change(action=IN_TWO_MINUTES, delay=0.0)
        wait()
    assert said == [
        "the metadata service of aws does not tell whether this node is to leave "
        "(HTTPError: HTTP Error 500: Internal Server Error); asking on",
        "the metadata service of aws answers again",
        "the metadata service of aws does not tell whether this node is to leave (TimeoutError: timed out); asking on",
        "the metadata service of aws answers again",
    ]


def test_gcp_preemption_is_heard_as_soon_as_it_is_said() -> None:
    with servers.serving(servers.Gcp()) as service:
        notices, said, wait = heard(service, poll=50)
        wait_for(lambda: any("wait_for_change" in request for request in service.requests), "a waiting request")
        service.change(preempted="TRUE")
        wait()
        waiting = "GET /computeMetadata/v1/instance/preempted?wait_for_change=true&timeout_sec=50&last_etag=1"
        assert waiting in service.requests
    assert [notice.reason for notice in notices] == ["Google Cloud preempts this machine"]
    assert 25 < notices[0].remaining() <= 30 and said == []


@pytest.mark.parametrize(
    ("event", "notice"), [("MIGRATE_ON_HOST_MAINTENANCE", False), ("TERMINATE_ON_HOST_MAINTENANCE", True)]
)
def test_gcp_maintenance_that_ends_the_machine_is_a_notice(event: str, notice: bool) -> None:
    with servers.serving(servers.Gcp()) as service:
        service.event = event
        found = Gcp(InterruptionConfig(gcp_endpoint=service.endpoint)).look()
    assert (found is not None) is notice
    assert found is None or found.reason == "Google Cloud announces TERMINATE_ON_HOST_MAINTENANCE"


def event(kind: str, machine: str, not_before: str) -> dict[str, Any]:
    """A scheduled event."""
    status = "Scheduled" if not_before else "Started"
    return {
        "EventId": "f020ba2e-3bc0-4c40-a10b-86575a9eabd5",
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": [machine],
        "EventStatus": status,
        "NotBefore": not_before,
    }


def test_azure_events_count_if_they_end_this_machine() -> None:
    with servers.serving(servers.Azure()) as service:
        azure = Azure(InterruptionConfig(azure_endpoint=service.endpoint))
        noon = "Tue, 01 Jan 2030 00:02:00 GMT"
        service.events = [event("Preempt", "node-2", noon), event("Freeze", "node-1", noon)]
        assert azure.look() is None
        service.events.append(event("Terminate", "node-1", "Tue, 01 Jan 2030 00:12:00 GMT"))
        service.events.append(event("Preempt", "node-1", noon))
        assert azure.look() == Notice("azure", "Azure announces Preempt of node-1", 1893456120.0)
        service.events = [event("Preempt", "node-1", "")]  # it has begun
        assert azure.look() == Notice("azure", "Azure announces Preempt of node-1")


def test_what_makes_no_sense_is_no_notice() -> None:
    with servers.serving(servers.Aws()) as service:
        service.action = {"action": "terminate"}
        with pytest.raises(KeyError):
            Aws(InterruptionConfig(aws_endpoint=service.endpoint)).look()


@pytest.mark.parametrize("step", [180.0, -180.0])
def test_a_clock_that_is_set_changes_nothing_about_the_time_that_is_left(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = Notices(InterruptionConfig(grace=30), log=lambda text: None)
    notices.tell(Notice("SIGTERM", "why", time.time() + 30))
    assert notices.notice is not None
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + step)
    assert 25 < notices.notice.remaining() <= 30


@pytest.mark.parametrize("fast", [180, -180])
def test_what_a_cloud_announces_is_by_its_clock_not_by_this_nodes(fast: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """This node's clock is 180 s fast or slow."""
    monkeypatch.setattr(
        BaseHTTPRequestHandler, "date_time_string", lambda *_: formatdate(time.time() - fast, usegmt=True)
    )
    announced = time.time() - fast + 120
    with servers.serving(servers.Aws()) as service:
        service.action = {"action": "terminate", "time": datetime.fromtimestamp(announced, UTC).isoformat()}
        found = Aws(InterruptionConfig(aws_endpoint=service.endpoint)).look()
    assert found is not None and 117 < found.remaining() < 122
    with servers.serving(servers.Azure()) as service:
        service.events = [event("Preempt", "node-1", formatdate(announced, usegmt=True))]
        found = Azure(InterruptionConfig(azure_endpoint=service.endpoint)).look()
    assert found is not None and 117 < found.remaining() < 122
