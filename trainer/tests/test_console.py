"""The lines of a job: how much time is left, and at its end the checkpoint and the next command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_scale.console import Console, roughly, time_left
from gaudi3_scale.status import Progress


def progress(**more: object) -> Progress:
    made = Progress(
        max_steps=100, world_size=1, device="cpu", tokens_per_sample=64, samples_per_step=16, loss=2.5,
        baseline_loss=3.0,
    )  # fmt: skip
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_a_line_says_how_much_time_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    # 90 steps of 1,024 tokens are left.
    job = progress(step=10, samples=160, tokens_per_second=1024.0)
    Console(speaks=True, bar=False).logged(job)
    assert capsys.readouterr().out == "step 10/100 loss 2.500 1,024 tokens/s, about 2 min left\n"


@pytest.mark.parametrize(
    "job",
    [
        progress(step=10, samples=160), progress(step=100, samples=1600, tokens_per_second=9.0),
        progress(step=0, samples=0, tokens_per_second=9.0), progress(step=10, samples=160, tokens_per_second=0.0),
    ],
)  # fmt: skip
def test_without_a_rate_no_time_is_given(job: Progress) -> None:
    assert time_left(job) == ""


def test_durations_are_rounded() -> None:
    assert [roughly(each) for each in (0.2, 40, 300, 7800, 7200)] == ["1 s", "40 s", "5 min", "2 h 10 min", "2 h 0 min"]


def test_the_last_line_names_the_checkpoint_and_what_is_next(capsys: pytest.CaptureFixture[str]) -> None:
    for then, said in (("next: gaudi3-train export --to model", "; next: gaudi3-train export --to model"), ("", "")):
        Console(speaks=True, bar=False).summary(progress(step=100, checkpoint=Path("/run/step-00000100")), then)
        finished, last = capsys.readouterr().out.splitlines()
        assert finished.startswith("finished 100 steps") and last == f"checkpoint /run/step-00000100{said}"
