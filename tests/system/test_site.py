"""site.yml on bare simulated nodes, as its users run it: first with --check, then for real, and again.

The tests build on each other, in the order of this file, on one cluster. It is then saved as the stage `trained`.
"""

from __future__ import annotations

import json

import pytest

from tests.ansible_run import PlaybookRun

from .conftest import ROOT, STAGE, Site, run

#: Of a run that changes nothing. They only fall. The head is asked for all others, and counts what is done once.
MAX_TASKS_PER_NODE = 3
MAX_TASKS_OF_THE_HEAD = 9


@pytest.fixture(scope="module")
def predicted(site: Site) -> PlaybookRun:
    """--check --diff on nodes on which nothing is installed."""
    return site.play("--check", "--diff")


#: What each run showed its user, by lines.
SHOWN: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def first(site: Site, predicted: PlaybookRun) -> PlaybookRun:
    done = site.play()
    SHOWN["first"] = site.shown.read_text().splitlines()
    return done


@pytest.fixture(scope="module")
def second(site: Site, first: PlaybookRun) -> PlaybookRun:
    done = site.play()
    SHOWN["second"] = site.shown.read_text().splitlines()
    return done


def test_check_on_empty_nodes_runs_through(predicted: PlaybookRun) -> None:
    assert predicted.returncode == 0, predicted.messages()
    assert len(predicted.changed()) > 20


def test_check_changes_nothing(site: Site, predicted: PlaybookRun) -> None:
    found = site.ssh("gaudi-1", "ls -1 /opt /etc/gaudi3-scale /usr/bin/hl-smi /etc/apt/sources.list.d 2>&1").stdout
    assert "cannot access '/etc/gaudi3-scale'" in found
    assert "cannot access '/usr/bin/hl-smi'" in found
    # The file that the vendor's installer left is where it was, and nothing of ours beside it.
    assert [line for line in found.splitlines() if line.startswith("habana")] == ["habanalabs_synapseai.list"]


def test_first_run_succeeds(first: PlaybookRun) -> None:
    assert first.returncode == 0, first.messages() or first.output


def test_check_predicted_exactly_what_changed(predicted: PlaybookRun, first: PlaybookRun) -> None:
    assert sorted(predicted.changed()) == sorted(first.changed())


def test_second_run_changes_nothing(second: PlaybookRun) -> None:
    assert second.returncode == 0, second.messages()
    assert second.changed() == set()
    assert {host: stats["changed"] for host, stats in second.report["stats"].items()} == dict.fromkeys(
        ["gaudi-1", "gaudi-2", "monitor-1"], 0
    )


def test_each_run_shows_few_lines(second: PlaybookRun) -> None:
    for name, most in (("first", 120), ("second", 40)):
        print(*SHOWN[name], sep="\n")
        assert len(SHOWN[name]) <= most, (name, len(SHOWN[name]))
        typed = ("  ssh ", "  curl ", "  ansible-playbook ", "    `ssh ")
        assert all(len(line) <= 80 or line.startswith(typed) for line in SHOWN[name]), name
        assert SHOWN[name][-1].startswith("Finished in ")
        # Prometheus asks for Alertmanager before it is installed, and a finished job has no page.
        assert not any("gets no answer" in line or line.startswith("FAILED") for line in SHOWN[name])


def test_second_run_costs_few_tasks(second: PlaybookRun) -> None:
    """The skipped among them, as each costs the controller a process; to leave a host out costs none."""
    counts = {
        host: sum(1 for each, name, _result in second.results() if each == host and "Leave out" not in name)
        for host in ("gaudi-1", "gaudi-2")
    }
    print("tasks per Gaudi node on a no-change run:", counts)
    assert 0 < counts["gaudi-1"] <= MAX_TASKS_OF_THE_HEAD and 0 < counts["gaudi-2"] <= MAX_TASKS_PER_NODE, counts


def test_every_dashboard_query_returns_data(site: Site, second: PlaybookRun) -> None:
    folder = ROOT / ".cache" / "simulator" / "clusters" / site.name
    inventory = json.loads(run("inventories/simulated/nodes", "--list", GAUDI3_SIMULATOR_CLUSTER=site.name).stdout)
    address = inventory["_meta"]["hostvars"]["monitor-1"]["ansible_host"]
    secrets = folder / "secrets"
    result = run(
        "python3", "tests/monitoring/check_dashboards.py", "--url", f"https://{address}:9090",
        "--ca", str(secrets / "ca.crt"), "--password-file", str(secrets / "prometheus_password"),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_check_on_restarted_nodes_predicts_nothing(site: Site, second: PlaybookRun) -> None:
    """Real runs on them, which change nothing either, are those of the tests that begin with the stage."""
    # Saving restarts every node.
    site.save(STAGE)
    check = site.play("--check", "--diff")
    assert check.returncode == 0, check.messages()
    assert check.changed() == set()
