"""Any signal, to whoever, in any phase: the job ends in bounded time, and restarted, as if nothing had been."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import assert_same
from killing import CASES, EVALUATE, EVERY, PAUSE_STEP, STEPS, Case, KilledJob, Row, page
from zygote import Client

FAST = {
    "SIGTERM-one-rank-forward",
    "SIGKILL-launcher-backward",
    "SIGTERM-launcher-evaluation",
    "SIGUSR1-all-ranks-save",
    "SIGKILL-one-rank-upload",
    "SIGTERM-one-rank-warm-up",
    "SIGUSR1-launcher-data",
    "SIGKILL-all-ranks-optimizer",
}
PARAMETERS = [pytest.param(c, id=c.name, marks=() if c.name in FAST else pytest.mark.matrix) for c in CASES]


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


@pytest.fixture(scope="session")
def table() -> Iterator[list[Row]]:
    """The cases that held; with the environment variable KILL_MATRIX_TABLE they are written into that file."""
    rows: list[Row] = []
    yield rows
    if "KILL_MATRIX_TABLE" in os.environ:
        Path(os.environ["KILL_MATRIX_TABLE"]).write_text(page(rows))


@pytest.mark.parametrize("case", PARAMETERS)
def test_a_killed_job_ends_in_time_and_then_as_an_uninterrupted_one(
    case: Case, client: Client, uninterrupted: KilledJob, text: Path, tmp_path: Path, table: list[Row]
) -> None:
    target = (f"checkpoint.target={tmp_path}/job/target",) if case.phase == "upload" else ()
    job = KilledJob(client, tmp_path / "job", text, *target)
    seen = job.strike(case)
    reached, committed = PAUSE_STEP[case.phase], max(seen.before, default=0)
    assert committed == (reached - (case.phase == "save")) // EVERY * EVERY
    if case.number == signal.SIGKILL and case.target != "launcher":
        assert seen.code == 1, seen
        kept = max(seen.after, default=0)
        assert kept >= committed  # half-written work may be lost, committed work may not
    else:
        assert seen.code == (-9 if case.number == signal.SIGKILL else 75), seen
        assert seen.status["state"] == "interrupted"
        kept = seen.status["step"]
        assert kept >= reached and max(seen.after, default=0) == kept  # not a step is lost
        assert not target or kept in job.uploaded()
    output = job.finish()
    assert job.status()["resumed_from_step"] == (kept or None), output
    assert job.lines("metrics") == uninterrupted.lines("metrics")
    assert job.lines("evaluation") == uninterrupted.lines("evaluation")
    assert [step for step, _ in job.lines("evaluation")] == list(range(EVALUATE, STEPS, EVALUATE))
    assert_same(job.state(), uninterrupted.state())
    assert not target or job.uploaded()[-1] == STEPS
    table.append(Row(case, seen, kept))
