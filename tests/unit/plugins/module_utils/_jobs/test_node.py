"""What root reads and writes beside and in a folder of the job's user, who may put anything there at any time."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import JobError
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import JobNode
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec

ROOT = Path(__file__).resolve().parents[5]
SECRET = "root:$6$salt$hash"
#: The user of the jobs: another than root where the tests run as root, as they do in a container.
OWNER = (65534, 65534) if os.geteuid() == 0 else (os.getuid(), os.getgid())
SPEC = JobSpec(name="demo", config={"train": {"max_steps": 20}}, nodes=("gaudi-1",), head_address="10.0.0.1")


class Systemctl:
    """Answers with one state after the other, the last one for ever."""

    def __init__(self, *states: str) -> None:
        self.states = list(states) or ["inactive"]
        self.calls: list[str] = []

    def __call__(self, argv: list[str]) -> tuple[int, str, str]:
        self.calls.append(argv[1])
        if argv[1] != "show":
            return 0, "", ""
        return 0, f"ActiveState={self.states.pop(0) if len(self.states) > 1 else self.states[0]}\n", ""


@pytest.fixture
def node(tmp_path: Path) -> JobNode:
    return node_of(tmp_path, Systemctl())


def node_of(tmp_path: Path, run: Systemctl) -> JobNode:
    (tmp_path / "units").mkdir(exist_ok=True)
    return JobNode(run, str(tmp_path / "jobs"), str(tmp_path / "units"), "systemctl", "journalctl")


def start(node: JobNode) -> None:
    texts = {node.config_path("demo"): "train: {}\n", node.unit_path("demo"): "[Service]\n"}
    node.start(SPEC, texts, OWNER, 0, {})


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "shadow"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail instead of waiting for ever."""

    def late(_number: int, _frame: Any) -> None:
        raise AssertionError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def kept(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


def swap_at_fsync(monkeypatch: pytest.MonkeyPatch, folder: Path, target: Path) -> list[str]:
    """The job's user wins the race for certain: while a file is synced, all new names become links to ``target``."""
    real, present, swapped = os.fsync, set(folder.rglob("*")), []

    def fsync(handle: int) -> None:
        real(handle)
        for path in set(folder.rglob("*")) - present:
            if path.is_file() and not path.is_symlink():
                swapped.append(path.name)
                path.unlink()
                path.symlink_to(target)

    monkeypatch.setattr(os, "fsync", fsync)
    return swapped


def test_a_draft_that_is_swapped_for_a_link_does_not_open_the_links_target(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    before = kept(secret)
    swapped = swap_at_fsync(monkeypatch, tmp_path / "folder", secret)
    write_file(str(tmp_path / "folder/job.json"), "{}\n", 0o640, OWNER[1])
    assert swapped
    assert kept(secret) == before


def test_a_start_leaves_a_file_of_roots_alone_whatever_the_jobs_user_puts_into_its_folder(
    tmp_path: Path, node: JobNode, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(node)
    before = kept(secret)
    swapped = swap_at_fsync(monkeypatch, tmp_path / "jobs/demo", secret)
    start(node)
    node.stop("demo")
    assert (swapped, kept(secret)) == ([], before)


def test_what_root_writes_of_a_job_lies_beside_its_folder(tmp_path: Path, node: JobNode) -> None:
    start(node)
    node.stop("demo")
    control = tmp_path / "jobs/.control/demo"
    assert sorted(path.name for path in (tmp_path / "jobs/demo").rglob("*")) == ["habana_logs"]
    assert sorted(path.name for path in control.iterdir()) == ["config.yml", "job.json"]
    root = os.geteuid()
    assert kept(control.parent)[:2] == (0o755, root)
    assert kept(control) == (0o750, root, OWNER[1])
    assert [kept(control / name) for name in ("config.yml", "job.json")] == [(0o640, root, OWNER[1])] * 2
    for folder in (tmp_path / "jobs/demo", tmp_path / "jobs/demo/habana_logs"):
        assert kept(folder) == (0o750, *OWNER)
    assert "stopped_at" in json.loads((control / "job.json").read_text())


@pytest.mark.parametrize("place", ["jobs/demo/status.json", "jobs/demo/job.json", "jobs/.control/demo/job.json"])
def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path, node: JobNode, place: str) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / place)
    with within(3):
        found = node.observe("demo")
        node.diff("demo", {})
    assert (found.record, found.status) == ({}, None)


ENDLESS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import JobNode
node = JobNode(lambda argv: (0, "ActiveState=inactive\\n", ""), sys.argv[1], sys.argv[1], "systemctl", "journalctl")
found = node.observe("demo")
print(found.status, found.record, node.diff("demo", {}))
"""


def test_an_endless_file_does_not_eat_the_memory(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    for name in ("status.json", "job.json", "config.yml"):
        (folder / name).symlink_to("/dev/zero")
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "collections")},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr[-200:]) == (0, "None {} []\n", "")


def test_a_file_of_more_than_a_mebibyte_is_not_read(tmp_path: Path, node: JobNode) -> None:
    (tmp_path / "jobs/demo").mkdir(parents=True)
    status = tmp_path / "jobs/demo/status.json"
    status.write_text(json.dumps({"state": "running", "note": "x" * (1 << 20)}))
    assert node.observe("demo").status is None
    status.write_text(json.dumps({"state": "running", "note": "x" * 1000}))
    assert node.observe("demo").status is not None


@pytest.mark.parametrize("make", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("place", ["jobs/demo/config.yml", "jobs/demo/status.json"])
def test_a_link_to_a_file_of_roots_shows_none_of_it(
    tmp_path: Path, node: JobNode, secret: Path, place: str, make: Any
) -> None:
    secret.write_text(json.dumps({"state": SECRET}))
    (tmp_path / "jobs/demo").mkdir(parents=True)
    make(secret, tmp_path / place)
    found = node.observe("demo")
    assert SECRET not in json.dumps([node.diff("demo", {}), found.as_dict("x")])


def test_a_link_in_place_of_a_folder_is_refused_and_its_target_not_given_away(tmp_path: Path, node: JobNode) -> None:
    start(node)
    target = tmp_path / "roots"
    target.mkdir(mode=0o700)
    before = kept(target)
    logs = tmp_path / "jobs/demo/habana_logs"
    logs.rmdir()
    logs.symlink_to(target)
    with pytest.raises(JobError, match=r"habana_logs is not a folder: .*\.$"):
        start(node)
    assert kept(target) == before


def test_a_control_folder_that_is_not_roots_is_not_trusted(tmp_path: Path, node: JobNode) -> None:
    control = tmp_path / "jobs/.control"
    (control / "demo").mkdir(parents=True)
    (control / "demo/job.json").write_text('{"spec_sha256": "forged"}')
    control.chmod(0o777)
    assert node.observe("demo").record == {}
    with pytest.raises(JobError, match=r"\.control can be changed by others than .*: .*\.$"):
        start(node)


def test_an_earlier_specification_moves_aside_with_what_is_known_of_it(tmp_path: Path, node: JobNode) -> None:
    start(node)
    (tmp_path / "jobs/demo.12345678").mkdir()
    aside = node.archive("demo", "1234567890")
    assert aside == str(tmp_path / "jobs/demo.12345678-2")
    assert json.loads((tmp_path / "jobs/.control/demo.12345678-2/job.json").read_text())["name"] == "demo"
    assert not (tmp_path / "jobs/.control/demo").exists()
    assert node.names() == ["demo"]  # by its unit


@pytest.mark.parametrize("purge", [False, True])
def test_removal_keeps_the_record_unless_all_goes(tmp_path: Path, node: JobNode, purge: bool) -> None:
    start(node)
    (tmp_path / "jobs/demo/status.json").write_text("{}")
    node.remove(node.observe("demo"), purge)
    assert not node.observe("demo").situation.has_setup
    assert (tmp_path / "jobs/demo").exists() is not purge
    assert (tmp_path / "jobs/.control/demo").exists() is not purge
    assert (node.observe("demo").record == {}) is purge


def test_a_job_that_goes_down_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    node = node_of(tmp_path, Systemctl("deactivating", "deactivating", "inactive"))
    assert node.observe_at_rest("demo").unit.active_state == "inactive"
    assert naps == [0.2, 0.2]


def test_a_job_that_does_not_go_down_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    assert (
        node_of(tmp_path, Systemctl("deactivating")).observe_at_rest("demo", 0.05).unit.active_state == "deactivating"
    )
