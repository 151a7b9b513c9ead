"""The series of a job, from files as the trainer writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import BEGAN, account, metric, write_lines

from gaudi3_watch import job_files
from gaudi3_watch.job_files import JobFiles

ALL = 10**9


def read(folder: Path) -> JobFiles:
    files = JobFiles(folder)
    files.poll(ALL)
    return files


def test_a_job_is_read(job: Path) -> None:
    files = read(job)
    assert files.span == (BEGAN + 5, BEGAN + 1000) and files.share_read == 1
    assert files.metrics.latest("loss") == 3.5 and files.evaluations.latest("validation_loss") == 3
    points = files.metrics.points("step_seconds", BEGAN, BEGAN + 2000, 100)
    assert points.last == [None] + [10] * 9


def test_the_time_between_two_processes_is_no_step(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "metrics.jsonl", [metric(10), metric(20), metric(30, time=BEGAN + 9000, tokens_per_second=None)]
    )
    points = read(tmp_path).metrics.points("step_seconds", BEGAN, BEGAN + 9999, 100)
    assert points.last == [None, 10, None]


def test_the_account_is_that_of_the_trainer(job: Path) -> None:
    files = read(job)
    found = files.goodput()
    assert (found.runs, files.clock_steps) == (2, 0)
    assert found.nanoseconds["restart_loss"] == pytest.approx(285e9)
    assert files.parts.latest("ratio") == pytest.approx(100 * found.ratio)
    shares = [files.parts.latest(name) for name in found.nanoseconds]
    assert sum(each or 0 for each in shares) == pytest.approx(100)
    assert files.spent is None


def test_checkpoints_and_restarts_are_marks(job: Path) -> None:
    assert [(time - BEGAN, kind, label) for time, kind, label in read(job).marks] == [
        (305, "checkpoint", "checkpoint at step 30"),
        (600, "restart", "restart from step 30"),
        (1000, "checkpoint", "checkpoint at step 100"),
    ]


def test_a_resumed_job_that_drops_lines_is_read_again(job: Path) -> None:
    files = read(job)
    write_lines(job / "new", [metric(10), metric(20)])
    (job / "new").replace(job / "metrics.jsonl")
    assert files.poll(ALL)
    assert files.metrics.newest == BEGAN + 200 and len(files.evaluations) == 2


def test_money_follows_the_ledger(job: Path) -> None:
    price = {"cost": {"price_per_hour": 36.0, "currency": "EUR"}}
    write_lines(
        job / "goodput.jsonl",
        [account(0, 10, event="start", startup=10) | price, account(5, 100, startup=10, compute=90) | price],
    )
    files = read(job)
    assert files.spent is not None and files.spent.total == pytest.approx(1.0)
    assert files.parts.latest("spent") == pytest.approx(1.0)


@pytest.mark.parametrize(
    "bad",
    [
        metric(5, time="now"),
        metric(5, time=-1),
        metric(5, time=1e300),
        metric(5, time=None),
        metric(5) | {"step": "5"},
        metric(5, loss="low"),
        metric(5, loss=True),
        metric(5) | {"step": None},
        {"step": 5, "loss": 1},
    ],
)
def test_a_line_of_another_kind_is_counted(tmp_path: Path, bad: object) -> None:
    write_lines(tmp_path / "metrics.jsonl", [metric(1), bad, metric(9)])
    files = read(tmp_path)
    assert (len(files.metrics), files.files[0].malformed) == (2, 1)


def test_a_loss_that_is_not_finite_is_a_gap(tmp_path: Path) -> None:
    write_lines(tmp_path / "metrics.jsonl", [metric(1), metric(2, loss=None), metric(3, loss=float("nan"))])
    files = read(tmp_path)
    assert (files.not_finite, files.files[0].malformed) == (2, 0)


def test_a_ledger_of_another_kind_is_counted(tmp_path: Path) -> None:
    good = account(1, 10)
    bad = [
        good | {"run": 1},
        good | {"nanoseconds": {}},
        good | {"step": 1.5},
        good | {"time": "x"},
        good | {"began": None},
    ]
    write_lines(tmp_path / "goodput.jsonl", [good, *bad])
    files = read(tmp_path)
    assert (files.files[2].malformed, files.goodput().runs) == (5, 1)


def test_a_ledger_without_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_files, "MOST_LEDGER_LINES", 3)
    write_lines(tmp_path / "goodput.jsonl", [account(step, 10 + step, compute=10 + step) for step in range(6)])
    files = read(tmp_path)
    assert files.ledger_is_cut and len(files.parts) == 3


def test_without_files_there_is_nothing(tmp_path: Path) -> None:
    files = read(tmp_path / "none")
    assert files.span is None and files.share_read == 1 and files.goodput().runs == 0
