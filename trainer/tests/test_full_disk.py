"""Reports that cannot be written are no reason to stop: it is said once, and they are written again later."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import ForkedJob
from zygote import Client

from gaudi3_scale.console import Console
from gaudi3_scale.files import Outage
from gaudi3_scale.status import MetricsFile, Progress, StatusFile
from gaudi3_scale.throughput.ledger import Ledger


def progress(step: int = 0) -> Progress:
    """Of a job of one process."""
    return Progress(max_steps=9, world_size=1, device="cpu", tokens_per_sample=16, samples_per_step=2, step=step)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Paths that are opened as the device to which nothing can be written; a link to it would not be followed."""
    paths: set[Path] = set()
    real = os.open

    def opened(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        return real("/dev/full", os.O_RDWR) if path in paths else real(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", opened)
    return paths


def test_an_outage_is_said_once_and_so_is_its_end(tmp_path: Path, full: set[Path]) -> None:
    said: list[str] = []
    outage = Outage(said.append)
    path = tmp_path / "metrics.jsonl"
    full.add(path)
    lines = MetricsFile(path, outage)
    for step in (1, 2, 3):
        lines.append(progress(step), 0.1, 2.0)
    assert said == [
        f"{path} cannot be written (No space left on device): training goes on, and what is missing is written as soon "
        "as it can be"
    ]
    assert outage.failures == 3
    full.clear()
    lines.append(progress(4), 0.1, 2.0)
    assert said[1:] == [f"{path} is written again"]
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3, 4], "no line is lost"
    full.add(path)
    lines.append(progress(5), 0.1, 2.0)
    assert len(said) == 3, "the next outage is said again"


def test_several_files_of_one_outage_are_one_line(tmp_path: Path) -> None:
    said: list[str] = []
    outage, folder = Outage(said.append), tmp_path / "gone"
    lines, status = MetricsFile(folder / "metrics.jsonl", outage), StatusFile(folder / "status.json", outage)
    ledger = Ledger(folder / "goodput.jsonl", outage=outage)
    for step in (1, 2):
        lines.append(progress(step), 0.1, 2.0)
        status.write("running", progress(step))
        ledger.append(step, force=True)
    status.write("failed", progress(2), "It broke.")
    assert len(said) == 1 and outage.failures == 7
    folder.mkdir()
    status.write("running", progress(3))
    assert len(said) == 2 and said[1].endswith("is written again")
    assert [json.loads(line)["step"] for line in lines.path.read_text().splitlines()] == [1, 2]
    assert [json.loads(line)["step"] for line in ledger.path.read_text().splitlines()] == [1, 2]


def test_an_anomaly_of_an_outage_is_written_though_no_other_follows(tmp_path: Path, full: set[Path]) -> None:
    """It may be the only one of a job: nothing that comes later writes to its file."""
    said: list[str] = []
    outage, rare = Outage(said.append), tmp_path / "anomalies.jsonl"
    full.add(rare)
    assert not outage.append(rare, "one\n")
    assert outage.append(tmp_path / "metrics.jsonl", "step\n") and len(said) == 1, "one of two is not the end of it"
    full.clear()
    assert outage.append(tmp_path / "metrics.jsonl", "step\n")
    assert rare.read_text() == "one\n" and said[1:] == [f"{rare} is written again"]


def test_a_torn_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = MetricsFile(tmp_path / "metrics.jsonl", Outage(lambda text: None))
    lines.append(progress(1), 0.1, 2.0)
    write, left = os.write, [20]

    def short(descriptor: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(28, "No space left on device")
        done = write(descriptor, data[: left[0]])
        left[0] = 0
        return done

    monkeypatch.setattr(os, "write", short)
    lines.append(progress(2), 0.1, 2.0)
    monkeypatch.undo()
    assert len(lines.path.read_text().splitlines()) == 1
    lines.append(progress(3), 0.1, 2.0)
    assert [json.loads(line)["step"] for line in lines.path.read_text().splitlines()] == [1, 2, 3]


def test_a_console_that_cannot_be_written_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115
    monkeypatch.setattr("sys.stdout", full)
    Console(speaks=True, bar=False).log("a line")
    monkeypatch.undo()
    with pytest.raises(OSError, match="No space"):
        full.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 12 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "small", folder], check=False).returncode
    ):
        pytest.skip("mounting a filesystem needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def lines(job: ForkedJob) -> list[dict[str, Any]]:
    """Of metrics.jsonl."""
    return [json.loads(line) for line in (job.node() / "metrics.jsonl").read_text().splitlines()]


def full_between(job: ForkedJob, after: int, until: int | None = None) -> dict[str, str]:
    """For `ForkedJob.fit`; see disk_full_job.py."""
    return {"FILL": str(job.folder), "FILL_AFTER": str(after)} | ({"FILL_UNTIL": str(until)} if until else {})


def test_a_full_disk_does_not_end_the_training(small: Path, warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, small / "job", text, log=tmp_path / "log")
    settings = ("train.max_steps=100", "train.log_every=1", "checkpoint.every=100", "train.evaluate_every=30")
    output = job.fit(*settings, environment=full_between(job, 10, 90))
    assert output.count("cannot be written (No space left on device)") == 1
    assert output.count("is written again") == 1
    assert [line["step"] for line in lines(job)] == list(range(1, 101))
    assert job.status()["state"] == "finished" and job.steps() == [100]


def test_a_failed_job_says_so_though_the_disk_is_full(small: Path, warm: Client, text: Path, tmp_path: Path) -> None:
    """The save fails; the checkpoint before it stays, and the job ends in a sentence."""
    job = ForkedJob(warm, small / "job", text, log=tmp_path / "log")
    settings = ("train.max_steps=12", "train.log_every=1")
    output = job.fit(*settings, code=1, environment=full_between(job, 8))
    assert "Traceback" not in output and output.splitlines()[-1].startswith("gaudi3-train: ")
    assert "No space left on device" in output.splitlines()[-1]
    assert job.status()["state"] == "failed" and "No space left" in job.status()["error"]
    assert job.steps() == [5]
    (job.folder / "filler").unlink()
    assert "resuming from step 5" in job.fit(*settings)
    assert job.status()["state"] == "finished"


def test_a_run_that_is_started_on_a_full_disk_ends_in_a_sentence(
    small: Path, warm: Client, text: Path, tmp_path: Path
) -> None:
    from disk_full_job import fill

    job = ForkedJob(warm, small / "job", text, log=tmp_path / "log")
    fill(small / "filler")
    output = job.fit("train.max_steps=5", code=1)
    assert "Traceback" not in output and "No space left on device" in output.splitlines()[-1]
