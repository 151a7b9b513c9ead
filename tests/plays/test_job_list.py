"""Several jobs of one play, each on its own nodes: trainer_jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..ansible_run import PlaybookRun
from .cluster import Cluster

UNITS = {name: f"gaudi-train-{name}.service" for name in ("left", "right", "own")}


def train(cluster: Cluster, jobs: list[dict[str, Any]], *arguments: str, **variables: Any) -> PlaybookRun:
    """The jobs alone, of a trainer that is installed, with looks in quick succession."""
    given = {"trainer_jobs": jobs, "trainer_poll_interval": 0.1, "trainer_user": "nobody"}
    tags = ["--tags", "trainer_job", "--skip-tags", "trainer_preflight"]
    return cluster.role("trainer", *tags, *arguments, facts=False, **{**given, **variables})


def nodes(cluster: Cluster, number: int) -> Cluster:
    cluster.gaudi(number, cards=8, trainer=True, variables={"trainer_cards": 8})
    del cluster.all["trainer_job_name"]
    return cluster


def unit(cluster: Cluster, host: str, job: str) -> str:
    """The unit of a job on a host; empty where there is none."""
    path = cluster[host].path(f"/etc/systemd/system/{UNITS[job]}")
    return str(path.read_text()) if path.exists() else ""


JOBS: list[dict[str, Any]] = [
    {"name": "left", "nodes": ["gaudi-1", "gaudi-2"], "config": {"train": {"max_steps": 30}}},
    {"name": "right", "nodes": ["gaudi-3"], "rdzv_port": 29500, "environment": {"SIDE": "right"}},
]


@pytest.fixture(scope="module")
def three(new_cluster: Callable[[], Cluster]) -> Cluster:
    cluster = nodes(new_cluster(), 3)
    cluster.all.update(trainer_environment={"SIDE": "any"}, trainer_max_restarts=2)
    for host in cluster.hosts.values():
        host.give(courses={UNITS[job]: ["running", "running", "finished"] for job in ("left", "right")})
    return cluster


@pytest.fixture(scope="module")
def ended(three: Cluster) -> PlaybookRun:
    """Two jobs side by side, watched to their ends."""
    return train(three, JOBS)


def test_each_job_is_on_its_nodes_and_meets_at_its_head(three: Cluster, ended: PlaybookRun) -> None:
    assert ended.returncode == 0, ended.messages()
    assert [bool(unit(three, f"gaudi-{number}", "left")) for number in (1, 2, 3)] == [True, True, False]
    assert [bool(unit(three, f"gaudi-{number}", "right")) for number in (1, 2, 3)] == [False, False, True]
    left, right = unit(three, "gaudi-2", "left"), unit(three, "gaudi-3", "right")
    assert "--nnodes=2" in left and "--rdzv-endpoint=10.0.0.1:29400" in left
    assert "--nnodes=1" in right and "--rdzv-endpoint=10.0.0.3:29500" in right


def test_what_a_job_leaves_out_is_as_the_variable_says(three: Cluster, ended: PlaybookRun) -> None:
    left, right = unit(three, "gaudi-1", "left"), unit(three, "gaudi-3", "right")
    assert "SIDE=any" in left and "SIDE=right" in right and "SIDE=any" not in right
    assert all("--max-restarts=2" in each and "--nproc-per-node=8" in each for each in (left, right))
    written = "/var/lib/gaudi3-scale/jobs/.control"
    assert "max_steps: 30" in three["gaudi-1"].path(f"{written}/left/config.yml").read_text()
    assert "max_steps" not in three["gaudi-3"].path(f"{written}/right/config.yml").read_text()


def test_all_jobs_start_before_one_is_waited_for(three: Cluster, ended: PlaybookRun) -> None:
    steps = {"gaudi-1": list[str](), "gaudi-3": list[str]()}
    for host, task, result in ended.results():
        name = task.partition(" : ")[2]
        if host in steps and name in ("Bring the job to its state", "Wait for the job") and not result.get("skipped"):
            steps[host].append(name)
    assert all(each == ["Bring the job to its state", "Wait for the job"] for each in steps.values()), steps
    order = [(task.partition(" : ")[2], host) for host, task, result in ended.results() if not result.get("skipped")]
    assert order.index(("Bring the job to its state", "gaudi-3")) < order.index(("Wait for the job", "gaudi-1"))


def test_the_nodes_of_a_job_do_its_tasks_together(three: Cluster, ended: PlaybookRun) -> None:
    """A node that went before the head would not know which cards were chosen, nor how far the job is."""
    tasks = [(task.partition(" : ")[2], host) for host, task, _result in ended.results()]
    for name in ("See what the job can use now", "Bring the job to its state"):
        first = tasks.index((name, "gaudi-1"))
        assert tasks[first + 1] == (name, "gaudi-2"), name


def test_what_the_command_line_gives_counts_for_all_jobs(three: Cluster, ended: PlaybookRun) -> None:
    run = train(three, JOBS, "--check", trainer_state="absent")
    assert run.returncode == 0 and {host for host, _task in run.changed()} == set(three.hosts), run.messages()


def test_a_second_run_leaves_them_alone(three: Cluster, ended: PlaybookRun) -> None:
    again = train(three, JOBS)
    assert again.returncode == 0 and again.changed() == set(), again.messages()
    assert [host.acts() for host in three.hosts.values()] == [[], [], []]


def test_a_job_that_fails_does_not_hide_how_the_other_ended(cluster: Cluster) -> None:
    nodes(cluster, 2)
    jobs = [{"name": "left", "nodes": ["gaudi-1"]}, {"name": "right", "nodes": ["gaudi-2"]}]
    cluster["gaudi-1"].give(courses={UNITS["left"]: ["running", "failed"]})
    cluster["gaudi-2"].give(courses={UNITS["right"]: ["running", "running", "finished"]})
    run = train(cluster, jobs)
    assert run.returncode != 0
    assert [message.partition(" at ")[0] for message in run.messages()] == ["Job left failed on this node"]
    waited = [each for host, task, each in run.results() if host == "gaudi-2" and task.endswith("Wait for the job")]
    assert [each["job"]["state"] for each in waited if not each.get("skipped")] == ["finished"]


def test_a_job_that_failed_at_once_is_not_started_again_by_waiting(cluster: Cluster) -> None:
    nodes(cluster, 1)
    cluster["gaudi-1"].give(courses={UNITS["own"]: ["failed"]})
    run = train(cluster, [], trainer_job_name="own", trainer_max_restarts=0)
    assert run.returncode != 0
    assert cluster["gaudi-1"].calls.count(f"systemctl start {UNITS['own']}") == 1, cluster["gaudi-1"].calls


def test_a_head_and_a_command_of_its_own_and_states_that_differ(cluster: Cluster) -> None:
    nodes(cluster, 2)
    for host in cluster.hosts.values():
        host.write("/opt/mine/train.py", "")
        host.give(courses={UNITS["own"]: ["running"]})
    own = {"name": "own", "head": "gaudi-2", "command": ["/opt/mine/train.py"], "state": "started"}
    run = train(cluster, [own, {"name": "right", "nodes": ["gaudi-2"], "state": "absent"}])
    assert run.returncode == 0, run.messages()
    assert all("--rdzv-endpoint=10.0.0.2:29400" in unit(cluster, host, "own") for host in ("gaudi-1", "gaudi-2"))
    check = train(cluster, [{**own, "state": "stopped"}], "--check")
    assert check.returncode == 0 and {host for host, _task in check.changed()} == {"gaudi-1", "gaudi-2"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"trainer_jobs": [{"name": "left"}], "trainer_job_name": "demo"},
            "trainer_job_name is demo and trainer_jobs has left: keep one of the two.",
        ),
        (
            {"trainer_jobs": [{"name": "left"}, {"name": "left"}]},
            "trainer_jobs has left, left: give each job a name of its own.",
        ),
        (
            {"trainer_jobs": [{"name": "left", "nodes": ["gaudi-1", "gaudi-9"]}]},
            "trainer_jobs has the nodes gaudi-9, which are not in trainer_nodes, where the trainer is installed: add "
            "them there, or take them out of the job.",
        ),
        (
            {"trainer_jobs": [{"name": "left", "head": "gaudi-9"}]},
            "The head node gaudi-9 is not one of the nodes of the job (gaudi-1): set trainer_head to one of them.",
        ),
        (
            {"trainer_jobs": [{"name": "left", "processes_per_node": 9}]},
            "gaudi-1 has 8 cards, too few for 9 processes: set trainer_processes_per_node to at most 8.",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_changes(
    cluster: Cluster, given: dict[str, Any], sentence: str
) -> None:
    nodes(cluster, 1)
    run = cluster.role("trainer", "--tags", "trainer_preflight", facts=False, trainer_user="nobody", **given)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [sentence]


@pytest.mark.parametrize("wrong", [{}, {"name": "left", "nods": []}, {"name": "left", "state": "done"}])
def test_a_job_is_described_in_known_words(cluster: Cluster, wrong: dict[str, Any]) -> None:
    nodes(cluster, 1)
    run = train(cluster, [wrong])
    assert run.returncode != 0 and cluster["gaudi-1"].acts() == []
    assert "trainer_jobs" in " ".join(run.messages())


def test_the_cards_are_counted_for_the_jobs_of_a_list(cluster: Cluster) -> None:
    """Nobody has counted them before a role that is used alone."""
    cluster.gaudi(1, cards=8, trainer=True)
    del cluster.all["trainer_job_name"]
    run = cluster.role(
        "trainer", "--tags", "trainer_job", "--check", trainer_jobs=[{"name": "left"}], trainer_user="nobody"
    )
    assert run.returncode == 0, run.messages()
    assert "--nproc-per-node=8" in str(run.result("gaudi-1", "Bring the job to its state")["diff"])
