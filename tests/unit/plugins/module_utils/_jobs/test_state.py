"""What state a job is in, from its unit and its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._host.systemd import UnitState
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import JobError
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import JobNode, check_venv, owner_of
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.state import state_of
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.status import Status

UP = UnitState("loaded", "active", "running", "success", 0, False)
GOING = UnitState("loaded", "deactivating", "stop-sigterm", "success", 0, False)
DOWN = UnitState("loaded", "inactive", "dead", "success", 0, False)
FAILED = UnitState("loaded", "failed", "failed", "exit-code", 1, False)
LEFT = UnitState("loaded", "inactive", "dead", "success", 75, False)
RECORD = {"started_at": 100.0}


def said(state: str, at: float) -> dict[str, Any]:
    return {"state": state, "updated_at": at}


@pytest.mark.parametrize(
    ("unit", "record", "status", "state"),
    [
        (UP, RECORD, said("running", 101), "running"),
        (UP, RECORD, said("finished", 101), "running"),
        (GOING, RECORD, said("running", 101), "running"),
        (DOWN, RECORD, said("finished", 101), "finished"),
        # Started again after it was finished: the trainer found nothing left to do.
        (DOWN, RECORD, said("finished", 99), "finished"),
        # Torchrun may complain about its peers after the trainer was done.
        (FAILED, RECORD, said("finished", 101), "finished"),
        # Started again after it was finished, and did not even come up.
        (FAILED, RECORD, said("finished", 99), "failed"),
        (FAILED, RECORD, said("running", 101), "failed"),
        (FAILED, RECORD, None, "failed"),
        # After a reboot systemd knows nothing; the trainer's last word counts.
        (DOWN, RECORD, said("failed", 101), "failed"),
        (DOWN, RECORD, said("running", 101), "stopped"),
        (DOWN, RECORD, None, "stopped"),
        # It left because it was told to; systemd takes 75 for a success.
        (DOWN, RECORD, said("interrupted", 101), "interrupted"),
        (DOWN, {**RECORD, "stopped_at": 102.0}, said("interrupted", 101), "interrupted"),
        (LEFT, RECORD, said("running", 101), "interrupted"),
        # Started again since, and killed before it wrote a word.
        (FAILED, RECORD, said("interrupted", 99), "failed"),
        (DOWN, RECORD, said("spare", 101), "spare"),
        (DOWN, RECORD, said("spare", 99), "stopped"),
        # Stopped by the operator, whatever the trainer made of it.
        (DOWN, {**RECORD, "stopped_at": 102.0}, said("failed", 101), "stopped"),
        (DOWN, {**RECORD, "stopped_at": 102.0}, said("finished", 101), "finished"),
    ],
)
def test_state(unit: UnitState, record: dict[str, Any], status: dict[str, Any] | None, state: str) -> None:
    assert state_of(unit, True, record, Status.of(status)) == state


@pytest.mark.parametrize("word", ["spare", "interrupted"])
def test_a_clock_that_was_set_back_changes_nothing(word: str) -> None:
    unit = replace(DOWN, invocation="0123")
    assert state_of(unit, True, RECORD, Status.of({**said(word, 99), "invocation": "0123"})) == word
    assert state_of(unit, True, RECORD, Status.of({**said(word, 101), "invocation": "4567"})) == "stopped"
    # After a reboot systemd names no run, and a trainer outside of a unit does not either.
    assert state_of(DOWN, True, RECORD, Status.of({**said(word, 101), "invocation": "0123"})) == word
    assert state_of(unit, True, RECORD, Status.of(said(word, 101))) == word


def test_a_job_without_a_unit_is_absent_unless_it_runs() -> None:
    assert state_of(DOWN, False, RECORD, Status.of(said("finished", 101))) == "absent"
    assert state_of(UP, False, RECORD, None) == "running"


class Systemctl:
    """Records commands and gives a prepared answer."""

    def __init__(self, out: str = "ActiveState=inactive\n", rc: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.out, self.rc = out, rc

    def __call__(self, argv: list[str]) -> tuple[int, str, str]:
        self.calls.append(argv)
        return self.rc, self.out, "no bus"


def node(tmp_path: Path, run: Systemctl) -> JobNode:
    return JobNode(run, str(tmp_path / "jobs"), str(tmp_path / "units"), "systemctl", "journalctl")


def test_jobs_are_found_by_folder_and_by_unit(tmp_path: Path) -> None:
    for name in ("jobs/demo", "jobs/demo.1234abcd", "jobs/.hidden", "units"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "units/gaudi-train-lost.service").touch()
    (tmp_path / "units/ssh.service").touch()
    assert node(tmp_path, Systemctl()).names() == ["demo", "lost"]


def test_no_jobs_on_an_empty_node(tmp_path: Path) -> None:
    assert node(tmp_path, Systemctl()).names() == []


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_status_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "jobs/demo").mkdir(parents=True)
    (tmp_path / "jobs/demo/status.json").write_text(text)
    assert node(tmp_path, Systemctl()).observe("demo").status is None


def test_what_an_earlier_run_wrote_is_not_the_progress_of_this_one(tmp_path: Path) -> None:
    folder, control = tmp_path / "jobs/demo", tmp_path / "jobs/.control/demo"
    folder.mkdir(parents=True)
    control.mkdir(parents=True)
    (control / "job.json").write_text(json.dumps(RECORD))
    (folder / "status.json").write_text(json.dumps(said("finished", 99)))
    assert node(tmp_path, Systemctl("ActiveState=active\n")).observe("demo").status is None
    status = node(tmp_path, Systemctl("ActiveState=inactive\n")).observe("demo").status
    assert status is not None and status.as_dict() == said("finished", 99)


def test_log_counts_from_the_end_and_reads_forward(tmp_path: Path) -> None:
    run = Systemctl("third\nsecond\nfirst\n")
    assert node(tmp_path, run).log("demo", 2, since=1767225600.9) == ["second", "third"]
    assert run.calls == [
        [
            "journalctl",
            "--reverse",
            "--lines=102",
            "--unit=gaudi-train-demo.service",
            "--since=@1767225600",
            "--output=cat",
            "--no-pager",
            "--quiet",
        ]
    ]


def test_no_log_is_asked_for_no_lines(tmp_path: Path) -> None:
    run = Systemctl()
    assert node(tmp_path, run).log("demo", 0) == []
    assert run.calls == []


def test_systemctl_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(JobError) as caught:
        node(tmp_path, Systemctl("", rc=1)).observe("demo")
    assert str(caught.value) == "systemctl show gaudi-train-demo.service failed: no bus."


def test_a_user_that_is_missing() -> None:
    with pytest.raises(JobError) as caught:
        owner_of("nobody-of-this-name")
    assert str(caught.value) == (
        "User nobody-of-this-name does not exist on this node: install the trainer with the role "
        "gaudi3.scale.trainer, or set 'user'."
    )


def test_a_trainer_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch(mode=0o755)
    with pytest.raises(JobError) as caught:
        check_venv(str(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}/bin/gaudi3-train is missing on this node: install the trainer with the role "
        "gaudi3.scale.trainer, or set 'venv'."
    )


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a"
    write_file(str(target), "old", 0o640, -1)
    assert target.stat().st_mode & 0o777 == 0o640

    def full(_handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_file(str(target), "new", 0o640, -1)
    assert target.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a"]
