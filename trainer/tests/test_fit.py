"""Jobs as a user runs them: they learn, survive a kill without a trace in the losses, and end once."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path

import pytest
from conftest import Job, assert_same, free_port, kill, wait_for, workers

from gaudi3_scale.throughput.goodput import Account, read

LOGGED = [1, *range(3, 61, 3)]


def test_a_job_learns_and_says_what_it_did(reference: tuple[Job, str]) -> None:
    job, output = reference
    status = job.status()
    assert [step for step, _ in job.losses()] == LOGGED
    assert {
        "state": "finished",
        "step": 60,
        "max_steps": 60,
        "tokens": 60 * 12 * 64,
        "world_size": 1,
        "device": "cpu",
        "precision": "32-true",
        "checkpoint": str(job.node() / "checkpoints" / "step-00000060"),
        "checkpoint_step": 60,
        "resumed_from_step": None,
        "error": None,
    }.items() <= status.items()
    assert job.steps() == [55, 60]
    seconds = status["goodput"]["seconds"]
    assert min(seconds["compute"], seconds["checkpoint_stall"], seconds["evaluation"], seconds["startup"]) > 0
    assert seconds["restart_loss"] == status["goodput"]["restarts"] == 0
    assert status["mfu"] is None  # nobody knows the peak of a CPU
    assert status["tokens_per_second_stepping"] >= status["tokens_per_second"] > 0
    assert status["first_loss"] == job.losses()[0][1] == pytest.approx(5.545, abs=0.15)  # ln 256: knows nothing yet
    assert status["loss"] == job.losses()[-1][1] < status["first_loss"] - 1
    assert status["started_at"] < status["updated_at"]
    assert f"step 60/60 loss {status['loss']:.3f} " in output
    assert "1 process(es) on cpu, precision 32-true (auto, device cpu), samples of 64 tokens, " in output
    last, checkpoint = output.splitlines()[-2:]
    assert checkpoint.startswith(f"checkpoint {status['checkpoint']}")
    assert last.startswith("finished 60 steps (46,080 tokens) with 1 process(es) on cpu in ")
    assert last.endswith(
        f": loss {status['first_loss']:.3f} -> {status['loss']:.3f}, held-out {status['validation_loss']:.3f}, "
        f"byte-frequency baseline {status['baseline_loss']:.3f} nats/byte"
    )


def test_a_finished_job_is_left_alone(reference: tuple[Job, str]) -> None:
    job, _ = reference
    before = {path: path.stat().st_mtime_ns for path in job.folder.rglob("*") if path.is_file()}
    assert job.run() == "already finished at step 60: nothing to do\n"
    assert {path: path.stat().st_mtime_ns for path in job.folder.rglob("*") if path.is_file()} == before


def test_a_killed_job_with_a_damaged_checkpoint_repeats_the_uninterrupted_one(
    reference: tuple[Job, str], text: Path, tmp_path: Path
) -> None:
    job, port = Job(tmp_path / "job", text), free_port()
    metrics = ("metrics.enabled=true", f"metrics.port={port}")
    with job.running(*metrics, lines=6, saved=10):
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert "gaudi_training_world_size 1.0" in page and "gaudi_training_step_seconds_bucket" in page
    newest = job.steps()[-1]
    state = job.node() / "checkpoints" / f"step-{newest:08d}" / "__0_0.distcp"
    state.write_bytes(state.read_bytes()[:-100])
    assert job.status()["state"] == "running"
    output = job.run()
    assert f"step-{newest:08d} is damaged (__0_0.distcp has " in output
    assert f"resuming from step {newest - 5}\n" in output
    assert job.status()["resumed_from_step"] == newest - 5
    goodput = job.status()["goodput"]
    assert goodput["restarts"] == 1 and goodput["seconds"]["restart_loss"] > 0
    assert sum(goodput["seconds"].values()) == pytest.approx(goodput["total_seconds"], abs=0.01)
    shown = Account(read(job.node() / "goodput.jsonl")).goodput().status()
    assert shown["seconds"]["restart_loss"] == goodput["seconds"]["restart_loss"]
    assert job.losses() == reference[0].losses()
    assert_same(job.state(60), reference[0].state(60))


def test_accumulated_batches_are_the_larger_batch(reference: tuple[Job, str], text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text)
    job.run("train.micro_batch_size=6", "train.accumulation_steps=2")
    for (step, loss), (other, expected) in zip(job.losses(), reference[0].losses(), strict=True):
        assert step == other and loss == pytest.approx(expected, rel=1e-4)


def test_another_model_in_the_same_directory_is_refused(reference: tuple[Job, str]) -> None:
    output = reference[0].run("model.layers=1", "train.max_steps=70", code=2)
    assert output.splitlines()[-1] == (
        f"gaudi3-train: The checkpoint {reference[0].node()}/checkpoints/step-00000060 is of a model with other sizes "
        "than the configuration's (model.layers is 1, and was 2): use another output_dir, or the sizes it was written "
        "with."
    )
    assert reference[0].status()["state"] == "failed"


def test_two_nodes_resume_exactly_though_one_lost_its_disk_and_a_silent_one_is_noticed(
    reference: tuple[Job, str], text: Path, tmp_path: Path
) -> None:
    settings = ("train.micro_batch_size=6", "train.max_steps=33")
    whole = Job(tmp_path / "whole", text, nodes=2)
    whole.run(*settings)
    assert whole.losses(0) == whole.losses(1)
    for (step, loss), (other, expected) in zip(whole.losses()[:2], reference[0].losses(), strict=False):
        assert step == other and loss == pytest.approx(expected, rel=1e-4)  # the same global batches

    broken = Job(tmp_path / "broken", text, nodes=2)
    with broken.running(*settings, lines=5, saved=10) as launchers:
        kill(workers(launchers[1].pid)[0], signal.SIGSTOP)
        took = wait_for(lambda: broken.status(0)["state"] == "failed", "failure", seconds=20)
    assert took < 5 + 5  # collective_timeout and some
    assert broken.status(0)["error"].startswith("Rank 0 lost contact with another process after step ")
    lost = broken.node(0) if 10 in broken.steps(1) else broken.node(1)
    for path in sorted(lost.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    output = broken.run(*settings)
    assert f"resuming from step {broken.status(0)['resumed_from_step']}\n" in output
    assert broken.status(0)["resumed_from_step"] >= 10
    for node in (0, 1):
        assert broken.losses(node) == whole.losses(node)
        assert broken.steps(node) == [30, 33]
        assert_same(broken.state(33, node), whole.state(33, node))


def test_three_processes_of_which_one_is_killed_are_restarted_and_repeat_the_same(text: Path, tmp_path: Path) -> None:
    """From three processes on the order of a ring's sums matters; see callbacks/start.py."""
    whole, broken = (Job(tmp_path / str(number), text, processes=3, restarts=number) for number in (0, 1))
    whole.run("train.log_every=1")
    with broken.running("train.log_every=1", lines=13, saved=10) as launchers:
        kill(workers(launchers[0].pid)[1], signal.SIGKILL)
        output = launchers[0].communicate(timeout=120)[0]
    assert launchers[0].returncode == 0, output
    assert broken.status()["resumed_from_step"] >= 10
    assert broken.losses() == whole.losses()


def test_nodes_with_different_data_are_refused(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text, nodes=2)
    data = job.node(1) / "data"
    data.mkdir(parents=True)
    other = Job(tmp_path / "other", text)
    from gaudi3_scale.config import DataConfig
    from gaudi3_scale.data import collect

    changed = tmp_path / "changed.txt"
    changed.write_text(text.read_text() + "more\n")
    corpus = collect(DataConfig(source=str(changed)), other.folder)
    mine = collect(DataConfig(source=str(text)), data)
    for name in ("shard-00000.bin", "index.json"):
        (mine.folder / name).write_bytes((corpus.folder / name).read_bytes())
    output = job.run(code=1)
    assert "gaudi3-train: The nodes' data differ: " in output
    assert job.status(0)["state"] == job.status(1)["state"] == "failed"


def test_the_evaluation_of_the_last_step_has_its_line(tmp_path: Path, text: Path) -> None:
    job = Job(tmp_path / "job", text, fresh=True)
    job.run("train.max_steps=3", "train.warmup_steps=1", "train.evaluate_every=2")
    lines = [json.loads(line) for line in (job.node() / "evaluation.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 3]
    assert lines[-1]["validation_loss"] == job.status()["validation_loss"]
