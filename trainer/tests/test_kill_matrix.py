"""Any signal, to whoever, in any phase: the job ends in bounded time, and restarted, as if nothing had been."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import assert_same
from killing import CASES, EVALUATE, EVERY, PAUSE_STEP, STEPS, Case, KilledJob
from zygote import Client

FAST = {
    "SIGTERM-one-rank-forward",
    "SIGKILL-launcher-backward",
    "SIGTERM-launcher-evaluation",
    "SIGUSR1-all-ranks-save",
    "SIGKILL-one-rank-upload",
    "SIGTERM-one-rank-warm-up",
}


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """What starts the jobs."""
    client = Client()
    yield client
    client.close()


@pytest.fixture(scope="session")
def uninterrupted(client: Client, text: Path, tmp_path_factory: pytest.TempPathFactory) -> KilledJob:
    """The job to which nothing happened."""
    job = KilledJob(client, tmp_path_factory.mktemp("matrix") / "uninterrupted", text)
    job.finish()
    return job


PARAMETERS = [pytest.param(c, id=c.name, marks=() if c.name in FAST else pytest.mark.matrix) for c in CASES]


@pytest.mark.parametrize("case", PARAMETERS)
def test_a_killed_job_ends_in_time_and_then_as_an_uninterrupted_one(
    case: Case, client: Client, uninterrupted: KilledJob, text: Path, tmp_path: Path
) -> None:
    job = KilledJob(client, tmp_path / "job", text)
    seen = job.strike(case)
    stopped = PAUSE_STEP[case.phase]
    if case.number == signal.SIGKILL and case.target != "launcher":
        assert seen.code == 1, job.status()
        kept = stopped // EVERY * EVERY if case.phase != "save" else stopped - EVERY
    else:
        assert seen.code == (-9 if case.number == signal.SIGKILL else 75), job.status()
        assert seen.state == "interrupted"
        kept = stopped
    assert max(seen.committed, default=0) == kept
    output = job.finish()
    assert job.status()["resumed_from_step"] == (kept or None), output
    assert job.lines("metrics") == uninterrupted.lines("metrics")
    assert job.lines("evaluation") == uninterrupted.lines("evaluation")
    assert [step for step, _ in job.lines("evaluation")] == list(range(EVALUATE, STEPS, EVALUATE))
    assert_same(job.state(), uninterrupted.state())
