"""The proof of exactness, on a real job and on doctored ones; and the list of checkpoints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import PACKAGES, SMALL
from training import Training, saver

from gaudi3_scale.config import Config, load
from gaudi3_scale.job.verify_resume import _compare, _Run


def gaudi3_train(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as a user runs it."""
    command = [sys.executable, "-m", "gaudi3_scale", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": PACKAGES}, check=False
    )


def test_a_job_proves_that_it_resumes_exactly(text: Path, tmp_path: Path) -> None:
    done = gaudi3_train("verify-resume", "--steps", "10", *SMALL, f"data.source={text}", f"output_dir={tmp_path}/mine")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "20 steps with 1 process(es), undisturbed",
        "20 steps with 1 process(es), killed after the checkpoint of step 10",
    ]
    assert lines[2].startswith("killed after step 1") and lines[2].endswith("; resumed with 1 process(es)")
    assert lines[3:] == ["EXACT: 20 losses and everything in the last checkpoint are equal to the last bit"]
    assert not (tmp_path / "mine").exists(), "the job's own directory is left alone"


def doctored(folder: Path, losses: list[float], steps: int = 2) -> _Run:
    """A finished run with these losses."""
    run = _Run(Config(), 1, folder, folder / "data")
    training = Training()
    training.train(steps)
    writer = saver(folder / "checkpoints", training)
    writer.save(2)
    assert writer.wait()
    lines = [json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in enumerate(losses, 1)]
    (folder / "metrics.jsonl").write_text("".join(lines))
    return run


def test_a_job_of_a_longer_warm_up_is_checked_too(tmp_path: Path) -> None:
    """The check makes fewer steps than most warm-ups have."""
    for number, job in enumerate((Config(), load(None, ["train.max_steps=9000", "train.warmup_steps=2000"]))):
        run = _Run(job, 3, tmp_path / str(number), tmp_path / "data")
        train = load(run._settings).train
        assert (train.max_steps, train.warmup_steps) == (6, 6)


def test_every_difference_is_found(tmp_path: Path) -> None:
    whole = doctored(tmp_path / "whole", [2.0, 1.0])
    cases = [
        ("same", [2.0, 1.0], 2, 0.0, "EXACT: 2 losses and everything in the last checkpoint are equal to the last bit"),
        (
            "loss",
            [2.0, 1.0 + 2**-40],
            2,
            0.0,
            "DIFFERENT: losses differ from step 2 on, by up to 9.1e-13 of their value ",
        ),
        ("close", [2.0, 1.0 + 2**-40], 2, 1e-3, "SAME SAMPLES: 2 losses agree to 9.1e-13 of their value (1e-03 is "),
        (
            "far",
            [2.0, 1.1],
            2,
            1e-3,
            "DIFFERENT: losses differ from step 2 on, by up to 1.0e-01 of their value at step 2",
        ),
        ("lost", [2.0], 2, 0.0, "DIFFERENT: the losses are of steps [1], not [1, 2]"),
        ("weights", [2.0, 1.0], 1, 0.0, "DIFFERENT: all losses are equal, but not scheduler."),
    ]
    for name, losses, steps, tolerance, words in cases:
        said: list[str] = []
        good = _compare(whole, doctored(tmp_path / name, losses, steps), tolerance, said.append)
        assert said[0].startswith(words) and good is words.startswith(("EXACT", "SAME")), name


def test_checkpoints_are_listed_with_what_is_wrong_with_them(tmp_path: Path) -> None:
    training = Training()
    training.train(1)
    writer = saver(tmp_path / "checkpoints", training)
    for step in (1000, 2000):
        writer.save(step)
    assert writer.wait()
    tensors = writer.store.path(2000) / "__0_0.distcp"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    size = tensors.stat().st_size
    done = gaudi3_train("checkpoints", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "step     1,000           0.1 MiB  verified, replicated",
        f"step     2,000           0.1 MiB  damaged: __0_0.distcp has {size} bytes instead of {size + 1}",
    ]
    empty = gaudi3_train("checkpoints", str(tmp_path / "x"))
    assert (empty.returncode, empty.stderr) == (
        2,
        f"gaudi3-train: There are no checkpoints in {tmp_path}/x/checkpoints: give a job's output_dir on this node.\n",
    )
