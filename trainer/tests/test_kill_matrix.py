"""Any signal, to whoever, in any phase: the job ends in bounded time, and restarted, as if nothing had been."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import assert_same
from killing import CASES, COLUMNS, EVALUATE, EVERY, PAUSE_STEP, PLAIN, STEPS, TEXT, Case, KilledJob, row
from zygote import Client

from tests.suite.proof import Proof


def strata(cases: list[Case]) -> dict[str, list[str]]:
    """The names of the cases of each phase."""
    return {phase: [case.name for case in cases if case.phase == phase] for phase in PAUSE_STEP}


# The sample is of plain jobs: of each other kind, one that nothing happens to would have to run, too.
PROOF = Proof("kill-matrix", strata(CASES), sample=Proof("kill-matrix", strata(PLAIN)).sample)


@pytest.fixture(scope="module")
def uninterrupted(client: Client, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], KilledJob]:
    """The job of a kind to which nothing happened."""
    folder = tmp_path_factory.mktemp("matrix")

    @functools.cache
    def finished(kind: str) -> KilledJob:
        job = KilledJob(client, folder / kind, text, kind=kind)
        job.finish()
        return job

    return finished


@pytest.mark.parametrize("case", PROOF.parameters({case.name: case for case in CASES}))
def test_a_killed_job_ends_in_time_and_then_as_an_uninterrupted_one(
    case: Case, client: Client, uninterrupted: Callable[[str], KilledJob], text: Path, tmp_path: Path
) -> None:
    PROOF.skip_if_held(case.name)
    target = (f"checkpoint.target={tmp_path}/job/target",) if case.phase == "upload" else ()
    if case.kind == "LoRA":
        pytest.importorskip("peft")
    expected = uninterrupted(case.kind)
    job = KilledJob(client, tmp_path / "job", text, *target, kind=case.kind)
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
    resumed = job.status()["resumed_from_step"]
    if case.kind == "HSDP" and resumed is not None and resumed > kept:
        # What all processes had written of a sharded checkpoint is committed by the next start.
        assert resumed == reached and case.number == signal.SIGKILL, output
        kept = resumed
    assert resumed == (kept or None), output
    assert job.lines("metrics") == expected.lines("metrics")
    assert job.lines("evaluation") == expected.lines("evaluation")
    assert [step for step, _ in job.lines("evaluation")] == [*range(EVALUATE, STEPS, EVALUATE), STEPS]
    assert_same(job.state(), expected.state())
    assert not target or job.uploaded()[-1] == STEPS
    PROOF.note(case.name, row(seen, kept))
    PROOF.write_table("The kill matrix", TEXT, COLUMNS)
