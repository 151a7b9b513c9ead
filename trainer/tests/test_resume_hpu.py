"""A job on a card goes on from a checkpoint. Its optimizer is Habana's own, which counts its steps in its groups."""

from __future__ import annotations

import shutil
from pathlib import Path

import interpreter
import pytest
from conftest import SIMULATOR, SMALL, zygote
from test_batch_job import SETTINGS, lines, status

STEPS = ("train.max_steps=6", "checkpoint.every=2", "checkpoint.keep=3")


def fit(folder: Path, text: Path) -> str:
    """A job of one process to its end; what it printed."""
    arguments = ["-m", "gaudi3_scale", "fit", *SMALL, *SETTINGS, *STEPS, f"data.source={text}", f"output_dir={folder}"]
    done = interpreter.run(zygote(cards=True), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_a_resumed_job_has_the_losses_of_an_undisturbed_one(text: Path, tmp_path: Path) -> None:
    fit(tmp_path, text)
    undisturbed = lines(tmp_path)
    assert len(undisturbed) == 6
    for lost in (4, 6):
        (found,) = (tmp_path / "checkpoints").glob(f"*{lost}")
        shutil.rmtree(found)
    assert "resuming from step 2" in fit(tmp_path, text)
    assert status(tmp_path)["resumed_from_step"] == 2
    assert lines(tmp_path)[-4:] == undisturbed[-4:]
