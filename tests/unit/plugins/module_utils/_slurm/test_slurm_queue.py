"""What is read of Slurm's answers, some of which are none."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import queue

#: As Slurm 22.05.8 prints it.
SHOWN = (
    "JobId=17 JobName=demo UserId=user(2000) GroupId=user(2000) MCS_label=N/A Priority=1 JobState=FAILED "
    "Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=1 ExitCode=75:0 NodeList=n[1-2] BatchHost=n1"
)


def test_the_queue_is_read_by_line_and_odd_lines_are_no_jobs() -> None:
    said = (
        "17|PENDING|Resources||/jobs/.control/demo/job.sbatch\n18|RUNNING|None|n[1-2]|/x|y\nslurm is slow\n|A|b|c|d\n"
    )
    first, second = queue.live_jobs(said)
    assert (first.number, first.state, first.reason, first.nodes) == (17, "PENDING", "Resources", "")
    assert (first.waits, first.live, first.ending) == (True, True, None)
    assert (second.reason, second.nodes, second.script, second.waits) == ("", "n[1-2]", "/x|y", False)


def test_a_job_that_ended_is_read_of_scontrol_and_of_sacct() -> None:
    shown = queue.shown_job(SHOWN, 17, "demo")
    assert shown is not None and (shown.state, shown.exit_status, shown.nodes) == ("FAILED", 75, "n[1-2]")
    assert shown.ending == "FAILED, exit status 75"
    commented = queue.shown_job(f"{SHOWN} Comment=x JobState=COMPLETED ExitCode=0:0 NodeList=n9", 17, "demo")
    assert commented == shown, "a job's own words change nothing"
    assert queue.shown_job(SHOWN, 17, "other") is None and queue.shown_job("", 17, "demo") is None
    said = "16|demo|COMPLETED|0:0|n1\n17|demo|CANCELLED by 2000|0:15|None assigned\nodd\n"
    kept = queue.kept_job(said, 17, "demo")
    assert kept is not None and (kept.state, kept.exit_status, kept.live) == ("CANCELLED", 0, False)
    assert "--user" not in " ".join(queue.kept_argv("sacct", 17)), "which may still be called root"
    assert queue.kept_job(said, 18, "demo") is None and queue.kept_job(said, 16, "other") is None


@pytest.mark.parametrize(
    ("said", "number"),
    [("17\n", 17), ("17;hall-2\n", 17), ("Budget: 5 h left\n17\n", 17), ("", None), ("Submitted\n", None)],
)
def test_the_number_of_a_submitted_job(said: str, number: int | None) -> None:
    assert queue.submitted(said) == number


def test_a_job_is_found_by_its_number_or_without_one_by_its_script() -> None:
    live = [queue.SlurmJob(5, "RUNNING", script="/mine"), queue.SlurmJob(6, "PENDING", script="/ours")]
    assert queue.own_job({"slurm": {"job": 5}}, live, "/ours") == live[0]
    assert queue.own_job({"slurm": {"job": 4}}, live, "/ours") is None
    assert queue.own_job({"slurm": {"user": "me"}}, live, "/ours") == live[1]
    assert queue.own_job({}, live, "/ours") is None
