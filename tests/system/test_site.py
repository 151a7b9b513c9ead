"""site.yml on simulated nodes, as its users run it: first with --check, then for real, again, and with a node more.

The tests build on each other, in the order of this file, on one cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from .conftest import ROOT, Site, SiteRun, run

MAX_TASKS_PER_NODE = 60


@pytest.fixture(scope="module")
def predicted(site: Site) -> SiteRun:
    """--check --diff on nodes on which nothing is installed."""
    return site.play("--check", "--diff")


@pytest.fixture(scope="module")
def first(site: Site, predicted: SiteRun) -> SiteRun:
    return site.play()


@pytest.fixture(scope="module")
def second(site: Site, first: SiteRun) -> SiteRun:
    return site.play()


def test_check_on_empty_nodes_runs_through(predicted: SiteRun) -> None:
    assert predicted.returncode == 0, predicted.messages()
    assert len(predicted.changed()) > 20


def test_check_changes_nothing(site: Site, predicted: SiteRun) -> None:
    found = site.ssh("gaudi-1", "ls /opt /etc/gaudi3-scale /usr/bin/hl-smi /etc/apt/sources.list.d 2>&1").stdout
    assert "cannot access '/etc/gaudi3-scale'" in found
    assert "cannot access '/usr/bin/hl-smi'" in found
    assert "habana" not in found


def test_first_run_succeeds(first: SiteRun) -> None:
    assert first.returncode == 0, first.messages() or first.output


def test_check_predicted_exactly_what_changed(predicted: SiteRun, first: SiteRun) -> None:
    assert sorted(predicted.changed()) == sorted(first.changed())


def test_second_run_changes_nothing(second: SiteRun) -> None:
    assert second.returncode == 0, second.messages()
    assert second.changed() == set()
    assert {host: stats["changed"] for host, stats in second.report["stats"].items()} == dict.fromkeys(
        ["gaudi-1", "gaudi-2", "localhost", "monitor-1"], 0
    )


def test_second_run_costs_few_tasks(second: SiteRun) -> None:
    counts = {host: second.count(host) for host in ("gaudi-1", "gaudi-2")}
    print("tasks per Gaudi node on a no-change run:", counts)
    assert all(0 < count < MAX_TASKS_PER_NODE for count in counts.values()), counts


def test_check_on_converged_nodes_predicts_nothing(site: Site, second: SiteRun) -> None:
    check = site.play("--check", "--diff")
    assert check.returncode == 0, check.messages()
    assert check.changed() == set()


def test_tags_limit_and_start_at_task(site: Site, second: SiteRun) -> None:
    tuned = site.play("--tags", "tuning", "--limit", "gaudi-2")
    assert tuned.returncode == 0, tuned.messages()
    assert {host for host, _name, _result in tuned.results()} == {"gaudi-2"}
    names = {name for _host, name, _result in tuned.results()}
    assert any("huge pages" in name.lower() or "kernel settings" in name.lower() for name in names), names
    assert not any("prometheus" in name.lower() for name in names)
    late = site.play("--start-at-task", "Read the cards back")
    assert late.returncode == 0, late.messages()
    assert {name for _host, name, _result in late.results()} <= {
        "Gathering Facts", "Read the cards back", "Read the training job back", "Sum up",
        "Require that the job trained on the cards",
    }  # fmt: skip


def test_every_dashboard_query_returns_data(site: Site, second: SiteRun) -> None:
    folder = ROOT / ".cache" / "simulator" / "clusters" / site.name
    inventory = json.loads(run("inventories/simulated/nodes", "--list", GAUDI3_SIMULATOR_CLUSTER=site.name).stdout)
    address = inventory["_meta"]["hostvars"]["monitor-1"]["ansible_host"]
    secrets = folder / "secrets"
    result = run(
        "python3", "tests/monitoring/check_dashboards.py", "--url", f"https://{address}:9090",
        "--ca", str(secrets / "ca.crt"), "--password-file", str(secrets / "prometheus_password"),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_killed_on_one_node_it_resumes_from_its_checkpoint(site: Site, second: SiteRun) -> None:
    config = {"train": {"max_steps": 150, "log_every": 5}, "checkpoint": {"every": 10}}
    job = ("-e", json.dumps({"trainer_job_name": "killed", "trainer_config": config}))
    started = site.play("--tags", "train", "-e", "trainer_state=started", *job)
    assert started.returncode == 0, started.messages()
    _wait_for(lambda: (site.status("gaudi-2", "killed").get("checkpoint_step") or 0) >= 20, "a checkpoint at step 20")
    assert site.ssh("gaudi-2", "pkill -9 -x gaudi3-train").returncode == 0
    unit = "systemctl is-active gaudi-train-killed.service"
    _wait_for(lambda: "failed" in site.ssh("gaudi-1", unit).stdout, "the unit of gaudi-1 to fail")
    _wait_for(lambda: "failed" in site.ssh("gaudi-2", unit).stdout, "the unit of gaudi-2 to fail")
    again = site.play(*job)
    assert again.returncode == 0, again.messages()
    for node in ("gaudi-1", "gaudi-2"):
        status = site.status(node, "killed")
        assert (status["state"], status["step"]) == ("finished", 150)
        assert status["resumed_from_step"] >= 20
    # One line per logged step, as if nothing had happened.
    log = site.ssh("gaudi-1", "cat /var/lib/gaudi3-scale/jobs/killed/metrics.jsonl").stdout
    steps = [json.loads(line)["step"] for line in log.splitlines() if line.startswith("{")]
    assert steps == sorted(set(steps))
    assert steps[-1] == 150


def _wait_for(condition: Callable[[], bool], what: str, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(2)


def test_a_third_node_touches_only_itself_and_the_targets(site: Site, second: SiteRun) -> None:
    site.up(3)
    grown = site.play()
    assert grown.returncode == 0, grown.messages()
    elsewhere = {(host, name) for host, name in grown.changed() if host != "gaudi-3"}
    assert {host for host, _name in elsewhere} == {"monitor-1"}
    assert len(elsewhere) == 1 and "target" in next(iter(elsewhere))[1].lower(), elsewhere
    assert any(host == "gaudi-3" for host, _name in grown.changed())
