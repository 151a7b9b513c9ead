"""A training job through the real role: started, watched, finished, failed and stopped, without a node."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from ..ansible_run import PlaybookRun
from .cluster import Cluster

JOBS = "/var/lib/gaudi3-scale/jobs"
CONTROL = f"{JOBS}/.control/demo"
UNIT = "gaudi-train-demo.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"


def train(cluster: Cluster, *arguments: str, **variables: Any) -> PlaybookRun:
    """The job's part of the trainer's role, with looks in quick succession."""
    given = {"trainer_job_name": "demo", "trainer_poll_interval": 0.1, "trainer_user": "nobody"}
    return cluster.role(
        "trainer",
        "--tags",
        "trainer_job",
        "--skip-tags",
        "trainer_preflight",
        *arguments,
        facts=False,
        **{**given, **variables},
    )


def nodes(cluster: Cluster, number: int, cards: int = 0, **variables: Any) -> Cluster:
    """Nodes with the trainer and with cards that need not be counted."""
    cluster.gaudi(number, cards=cards, trainer=True, variables={"trainer_cards": 8, **variables})
    return cluster


def rendezvous(cluster: Cluster) -> set[str]:
    """Under which names the launchers of all nodes meet."""
    units = [host.path(UNIT_FILE) for host in cluster.hosts.values()]
    return {re.findall(r"--rdzv-id=(\S+)", unit.read_text())[0] for unit in units if unit.exists()}


def starts(cluster: Cluster) -> dict[str, int]:
    """How often each host's unit was started in the last run."""
    return {name: host.calls.count(f"systemctl start {UNIT}") for name, host in cluster.hosts.items()}


@pytest.fixture(scope="module")
def two(new_cluster: Callable[[], Cluster]) -> Cluster:
    cluster = nodes(new_cluster(), 2, cards=8)
    for host in cluster.hosts.values():
        host.give(courses={UNIT: ["running", "running", "finished"]})
    return cluster


@pytest.fixture(scope="module")
def finished(two: Cluster) -> PlaybookRun:
    """A job on two nodes, watched to its end."""
    return train(two)


def test_a_job_is_watched_to_its_end(two: Cluster, finished: PlaybookRun) -> None:
    assert finished.returncode == 0, finished.messages()
    for name in ("gaudi-1", "gaudi-2"):
        assert finished.result(name, "Bring the job to its state")["changed"]
    assert finished.result("gaudi-1", "Wait for the job")["job"]["state"] == "finished"
    assert finished.result("gaudi-2", "See how the job ended on the other nodes")["job"]["state"] == "finished"
    assert "gaudi-1: step 40/200, loss 2.310" in finished.output


def test_the_nodes_meet_at_the_head(two: Cluster, finished: PlaybookRun) -> None:
    first, second = (two[name].path(UNIT_FILE).read_text() for name in ("gaudi-1", "gaudi-2"))
    assert len(rendezvous(two)) == 1
    assert "--nnodes=2" in first and "--nproc-per-node=8" in first and "--nproc-per-node=8" in second
    assert "--rdzv-endpoint=10.0.0.1:29400" in first and "--rdzv-endpoint=10.0.0.1:29400" in second
    assert "is_host=true" in first and "is_host=false" in second
    assert "--local-addr=10.0.0.1" in first and "--local-addr=10.0.0.2" in second


def test_a_job_has_what_a_login_shell_has(two: Cluster, finished: PlaybookRun) -> None:
    for host in two.hosts.values():
        unit = host.path(UNIT_FILE).read_text().splitlines()
        assert "EnvironmentFile=-/etc/gaudi3-scale/runtime.env" in unit
        runtime = host.path("/etc/gaudi3-scale/runtime.env").read_text().splitlines()
        assert "GC_KERNEL_PATH=/usr/lib/habanalabs/libtpc_kernels.so" in runtime
        assert host.mode("/etc/gaudi3-scale/runtime.env") == 0o644
        assert not any(line.startswith("HABANA_LOGS=") for line in runtime), "the job's own folder"


def test_a_job_meets_on_the_interface_of_its_address_and_opens_its_cards(two: Cluster, finished: PlaybookRun) -> None:
    for host in two.hosts.values():
        unit = host.path(UNIT_FILE).read_text().splitlines()
        assert {"GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "HABANA_VISIBLE_MODULES"} <= {
            line.split("=")[1] for line in unit if line.startswith("Environment=")
        }
        assert "Environment=GLOO_SOCKET_IFNAME=eth0" in unit and "Environment=HCCL_SOCKET_IFNAME=eth0" in unit
        assert "Environment=HABANA_VISIBLE_MODULES=0,1,2,3,4,5,6,7" in unit
        assert "SupplementaryGroups=render" in unit


def test_what_a_job_keeps_is_for_its_user_alone(two: Cluster, finished: PlaybookRun) -> None:
    for host in two.hosts.values():
        assert host.mode(f"{JOBS}/demo") == 0o750
        assert {name: host.mode(f"{CONTROL}/{name}") for name in ("config.yml", "job.json", "secret")} == {
            "config.yml": 0o640,
            "job.json": 0o640,
            "secret": 0o640,
        }
        assert host.mode(UNIT_FILE) == 0o644


def test_the_nodes_of_a_job_have_one_secret_which_is_shown_nowhere(two: Cluster, finished: PlaybookRun) -> None:
    (secret,) = {host.path(f"{CONTROL}/secret").read_text().strip() for host in two.hosts.values()}
    (kept,) = (two.folder / "home/.config/gaudi3-scale").glob("*/trainer_job_secret")
    assert re.fullmatch("[0-9a-f]{64}", secret) and kept.stat().st_mode & 0o777 == 0o600
    for each in (secret, kept.read_text().strip()):
        assert each not in finished.output
        assert not any(each in call for host in two.hosts.values() for call in host.calls)
    for host in two.hosts.values():
        assert f" --secret-file={CONTROL}/secret " in host.path(UNIT_FILE).read_text()


def test_a_finished_job_is_left_alone(two: Cluster, finished: PlaybookRun) -> None:
    before = {name: host.files() for name, host in two.hosts.items()}
    again = train(two)
    assert again.returncode == 0 and again.changed() == set(), again.messages()
    assert [host.acts() for host in two.hosts.values()] == [[], []]
    assert {name: host.files() for name, host in two.hosts.items()} == before


def test_a_node_on_which_a_job_was_finished_joins_those_on_which_it_was_not(cluster: Cluster) -> None:
    nodes(cluster, 2)
    cluster["gaudi-1"].give(courses={UNIT: ["running"]})
    cluster["gaudi-2"].give(courses={UNIT: ["finished"]})
    assert train(cluster, trainer_state="started").returncode == 0
    for host in cluster.hosts.values():
        host.give(courses={UNIT: ["running", "finished"]})
    cluster["gaudi-1"].unit("gaudi-train-demo", "interrupted")
    run = train(cluster)
    assert run.returncode == 0, run.messages()
    assert starts(cluster) == {"gaudi-1": 1, "gaudi-2": 1}


def test_a_failure_shows_where_why_and_the_log(cluster: Cluster) -> None:
    nodes(cluster, 1)
    cluster["gaudi-1"].give(courses={UNIT: ["running", "failed"]})
    (cluster["gaudi-1"].folder / "journal").write_text("Traceback: the last words\n")
    run = train(cluster)
    assert run.returncode != 0
    assert run.messages() == [
        "Job demo failed on this node at step 60 of 200: the loss is not finite; the last lines of its log are in "
        "'log'."
    ]
    assert run.result("gaudi-1", "Wait for the job")["log"] == ["Traceback: the last words"]


def test_a_unit_that_does_not_start_is_named(cluster: Cluster) -> None:
    nodes(cluster, 1)
    cluster["gaudi-1"].give(faults=[f"start {UNIT}"])
    run = train(cluster)
    assert run.returncode != 0
    assert run.messages() == [f"Unit {UNIT} did not start: Job for {UNIT} failed because the test wants it."]


def test_a_script_of_ones_own_is_run_like_any_job(cluster: Cluster) -> None:
    """The same unit around it; watched to its end; another argument is another training."""
    nodes(cluster, 2)
    given = {"trainer_command": ["train.py", "--name", "50 % of $HOME"], "trainer_chdir": "/opt/mine"}
    for host in cluster.hosts.values():
        host.write("/opt/mine/train.py", "")
        host.give(courses={UNIT: ["running", "finished"]})
    run = train(cluster, **given, trainer_interruption={"sources": ["aws"]}, trainer_max_restarts=1, trainer_spares=1)
    assert run.returncode == 0, run.messages()
    assert run.result("gaudi-2", "See how the job ended on the other nodes")["job"]["state"] == "finished"
    assert len(rendezvous(cluster)) == 1
    for host in cluster.hosts.values():
        unit = host.path(UNIT_FILE).read_text()
        assert "\nWorkingDirectory=/opt/mine\n" in unit and f"\nEnvironment=GAUDI3_JOB_DIRECTORY={JOBS}/demo\n" in unit
        assert '"GAUDI3_INTERRUPTION={\\"sources\\": [\\"aws\\"]}"' in unit and " --replace --nnodes=1 " in unit
        python = "/opt/gaudi3-scale/venv/bin/python"
        assert f' --no-python {python} /opt/mine/train.py --name "50 %% of $$HOME"\n' in unit
        assert not host.path(f"{CONTROL}/config.yml").exists()
    again = train(cluster, "--check", **{**given, "trainer_command": ["train.py", "--name", "other"]})
    assert again.returncode == 0 and again.result("gaudi-1", "Bring the job to its state")["archived"], again.messages()


@pytest.fixture(scope="module")
def stopped(new_cluster: Callable[[], Cluster]) -> tuple[Cluster, PlaybookRun]:
    """A job that ran on one node and was stopped."""
    cluster = nodes(new_cluster(), 1)
    assert train(cluster, trainer_state="started").returncode == 0
    return cluster, train(cluster, trainer_state="stopped")


def test_a_running_job_is_stopped_and_its_stop_remembered(stopped: tuple[Cluster, PlaybookRun]) -> None:
    cluster, run = stopped
    assert run.returncode == 0 and len(run.changed()) == 1, run.messages()
    host = cluster["gaudi-1"]
    assert host.acts()[0] == f"systemctl stop {UNIT}"
    assert json.loads(host.path(f"{CONTROL}/job.json").read_text())["stopped_at"]


def test_a_stopped_job_stays_stopped(stopped: tuple[Cluster, PlaybookRun]) -> None:
    """Nobody names the job: a site is played again, for whatever reason."""
    cluster, _run = stopped
    cluster["gaudi-1"].give(courses={UNIT: ["finished"]})
    assert train(cluster).returncode == 0
    assert starts(cluster) == {"gaudi-1": 0}
    resumed = train(cluster, trainer_resume_stopped=True)
    assert resumed.returncode == 0, resumed.messages()
    assert starts(cluster) == {"gaudi-1": 1}


def test_more_processes_than_cards_are_refused_by_the_job_itself(cluster: Cluster) -> None:
    nodes(cluster, 1)
    run = train(cluster, "--check", trainer_processes_per_node=9, trainer_allow_partial_nodes=True)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == ["This node has 8 cards, too few for 9 processes: set processes_per_node to at most 8."]


def test_a_part_of_the_nodes_is_refused(cluster: Cluster) -> None:
    nodes(cluster, 2)
    run = train(cluster, "--limit", "gaudi-1")
    assert run.returncode != 0 and cluster["gaudi-1"].acts() == []
    assert run.messages() == [
        "Job demo needs gaudi-2, which this play does not work on (left out by --limit or serial, or failed before): "
        "include all nodes, set trainer_nodes, or leave training out with --skip-tags train."
    ]


@pytest.mark.skipif(not shutil.which("ssh"), reason="ssh is missing, over which a host would not answer")
def test_a_dead_head_that_is_left_out_is_named_alone(cluster: Cluster) -> None:
    """Another node asks it how far the job is, and is not lost with it."""
    nodes(cluster, 3)
    cluster.variables["gaudi-1"].update(
        ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1, ansible_ssh_retries=0
    )
    run = train(cluster, "--limit", "!gaudi-1")
    assert run.returncode == 2, run.messages()
    told = {host: result["msg"] for host, _name, result in run.results() if result.get("failed")}
    assert sorted(told) == ["gaudi-2", "gaudi-3"]
    assert all(said.startswith("Job demo needs gaudi-1, which this play does not work on") for said in told.values())


def test_a_run_that_begins_behind_the_count_of_the_cards_starts_nothing(cluster: Cluster) -> None:
    """The job would be another one, which does not use them."""
    cluster.gaudi(1, cards=8, trainer=True)
    tags = ("--tags", "trainer_job", "--start-at-task", "Run the job, or those of the list")
    given: dict[str, Any] = {"trainer_processes_per_node": 8, "trainer_user": "nobody"}
    for facts, said in ((False, "The facts of gaudi-1 were not gathered"), (True, "The cards of gaudi-1 were not")):
        run = cluster.role("trainer", *tags, facts=facts, **given)
        assert run.returncode != 0 and run.changed() == set(), run.messages()
        assert said in run.messages()[0]


def test_another_head(cluster: Cluster) -> None:
    nodes(cluster, 2)
    cluster.groups["gaudi_head"] = ["gaudi-2"]
    run = train(cluster, trainer_state="started")
    assert run.returncode == 0, run.messages()
    first, second = (cluster[name].path(UNIT_FILE).read_text() for name in ("gaudi-1", "gaudi-2"))
    assert "is_host=false" in first and "is_host=true" in second
    assert "--rdzv-endpoint=10.0.0.2:29400" in first and "--rdzv-endpoint=10.0.0.2:29400" in second


def test_nodes_of_one_job_never_wait_for_each_other_under_two_names(cluster: Cluster) -> None:
    """It is refused, naming the odd node and both numbers, before anything is changed."""
    nodes(cluster, 3)
    cluster.variables["gaudi-2"]["trainer_cards"] = 7
    run = train(cluster, trainer_state="started")
    assert run.returncode != 0 and not run.changed() and rendezvous(cluster) == set()
    assert all("(gaudi-1 8, gaudi-2 7, gaudi-3 8)" in message for message in run.messages()), run.messages()


def test_waiting_takes_as_long_with_few_forks(cluster: Cluster) -> None:
    nodes(cluster, 3)
    for host in cluster.hosts.values():
        host.give(courses={UNIT: ["running"]})
    run = train(cluster, forks=1, trainer_timeout=10, trainer_poll_interval=5)
    assert run.returncode != 0 and "still runs" in " ".join(run.messages()), run.messages()
    assert seconds(run, "Wait for the job") < 25


def test_a_node_joins_before_others_wait_for_it(cluster: Cluster) -> None:
    nodes(cluster, 2)
    cluster["gaudi-1"].give(courses={UNIT: ["running"]})
    cluster["gaudi-2"].give(courses={UNIT: ["finished"]})
    assert train(cluster, trainer_state="started").returncode == 0
    run = train(cluster, forks=1, trainer_timeout=2, trainer_poll_interval=2)
    assert starts(cluster)["gaudi-2"] == 1, run.messages()
    before = cluster.calls[: cluster.calls.index(f"gaudi-2 systemctl start {UNIT}")]
    assert before.count(f"gaudi-1 systemctl show {UNIT}") <= 2, before


def test_each_cluster_has_its_own_job(cluster: Cluster) -> None:
    for letter in "ab":
        for number in (1, 2):
            cluster.add(
                f"{letter}-{number}", "gaudi", cards=0, trainer=True,
                variables={"trainer_cards": 8, "trainer_nodes": [f"{letter}-1", f"{letter}-2"],
                           "trainer_head": f"{letter}-1"},
            )  # fmt: skip
    for name in ("a-1", "a-2", "b-1", "b-2"):
        cluster[name].give(courses={UNIT: ["finished"]})
    cluster.groups["a"] = ["a-1", "a-2"]
    first = train(cluster, group="a", trainer_state="started")
    assert first.returncode == 0, first.messages()
    run = train(cluster, trainer_state="started")
    assert run.returncode == 0, run.messages()
    assert starts(cluster) == {"a-1": 0, "a-2": 0, "b-1": 1, "b-2": 1}


def test_each_cluster_gets_the_cards_that_the_preflight_chose_for_it(cluster: Cluster) -> None:
    """Nodes whose answers are known are not asked again, so that what was chosen for all of them counts."""
    facts: dict[str, Any] = {
        "distribution": "Ubuntu",
        "distribution_version": "22.04",
        "distribution_major_version": "22",
    }
    facts |= {"os_family": "Debian", "kernel": "5.15.0", "effective_user_id": 0}
    offer = {"cards": 8, "modules": [*range(8)], "held": [], "uid": 900, "shares": None}
    processes = {"a-1": 2, "b-1": 8}
    for name, number in processes.items():
        job = {"nodes": [name], "head": name, "user": "nobody", "jobs_dir": JOBS, "partial": False}
        plan: dict[str, Any] = {
            "ansible_facts": {f"ansible_{key}": value for key, value in facts.items()},
            "cards": {"card_count": 8, "generation": "gaudi3", "iommu_problem": None, "cards": []},
            "found": {"node": {"offer": {**offer, "processes": number}}}, "job": job, "problem": "", "name": None,
        }  # fmt: skip
        own = {"trainer_cards": 8, "trainer_nodes": [name], "trainer_head": name, "trainer_job_name": "demo"}
        cluster.add(name, "gaudi", cards=0, variables={**own, "trainer_processes_per_node": number, "known": plan})
    role = {"name": "gaudi3.scale.trainer", "tasks_from": "wheel", "rolespec_validate": False}
    tasks = [
        {"set_fact": {"_gaudi_plan": "{{ known }}"}},
        {"gaudi3.scale.gaudi_site_plan": {"plans": "_gaudi_plan"}, "run_once": True, "register": "_gaudi_site"},
        # For the variables of the role alone.
        {"import_role": role, "when": False},
        {"name": "Tell", "debug": {"msg": "{{ lookup('gaudi3.scale.plan', 'trainer_options').modules | length }}"}},
    ]
    path = cluster.folder / "cards.yml"
    path.write_text(json.dumps([{"hosts": "gaudi", "gather_facts": False, "tasks": tasks}]))
    run = cluster.play(str(path))
    assert run.returncode == 0, run.messages()
    assert {name: int(run.result(name, "Tell")["msg"]) for name in processes} == processes


def test_a_job_on_some_of_the_nodes(cluster: Cluster) -> None:
    nodes(cluster, 3)
    run = train(cluster, "--check", trainer_nodes=["gaudi-2", "gaudi-3"], trainer_head="gaudi-2")
    assert run.returncode == 0, run.messages()
    assert {host for host, _task in run.changed()} == {"gaudi-2", "gaudi-3"}


def seconds(run: PlaybookRun, name: str) -> float:
    """How long a task took on all hosts together."""
    for play in run.report["plays"]:
        for task in play["tasks"]:
            if task["task"]["name"].endswith(name):
                times = [datetime.fromisoformat(task["task"]["duration"][key]) for key in ("start", "end")]
                return (times[1] - times[0]).total_seconds()
    raise AssertionError(name)


def test_nodes_that_share_the_jobs_have_one_number_for_their_user(cluster: Cluster) -> None:
    """Otherwise one node could not write what the other has begun."""
    cluster.gaudi(2, cards=1)
    for number, name in enumerate(cluster.hosts):
        cluster[name].write("/proc/mounts", "nas:/jobs /var/lib/gaudi3-scale nfs4 rw 0 0\n")
        cluster.variables[name]["trainer_uid"] = 990 + number
    arguments = ("--check", "--tags", "trainer_preflight")
    told = cluster.role("trainer", *arguments)
    assert told.messages()[0] == (
        "gaudi3-scale has uid 991 on gaudi-2 and 990 on gaudi-1, which share /var/lib/gaudi3-scale/jobs (nas:/jobs): "
        "set trainer_uid and trainer_gid to numbers that are free on all nodes."
    )
    one = cluster.role("trainer", *arguments, trainer_uid=990)
    assert [message for message in one.messages() if "uid" in message] == []


def test_a_node_without_a_passport_starts_no_job_where_they_are_enforced(cluster: Cluster) -> None:
    site = nodes(cluster, 1, cards=1, trainer_cards=1)
    (site.folder / "health").mkdir()
    (site.folder / "health/passports.key").write_text("ab" * 32)
    given = {"trainer_processes_per_node": 1, "trainer_passports_directory": str(site.folder / "health")}
    refused = train(site, trainer_passports="enforce", **given)
    assert refused.returncode != 0
    assert any("no valid passport, as there is none: examine it" in line for line in refused.messages()), (
        refused.messages()
    )
    assert starts(site) == {"gaudi-1": 0}
