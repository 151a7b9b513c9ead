"""The health of nodes through the real playbook: verdicts, modes, passports, a tool that hangs, and nothing changed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from gaudi3_simulator.node import cli

from .cluster import Cluster
from .host import Host, _environment, program


def fault(host: Host, *words: str) -> None:
    """Put a fault on a host, or take it away."""
    with _environment({"GAUDI3_SIMULATOR_ROOT": str(host.root)}):
        assert cli.main(["fault", *words]) == 0


@pytest.fixture(scope="module", name="site")
def a_site(new_cluster: Callable[[], Cluster]) -> Cluster:
    """Two nodes: one is sound, one has a card that needs a reset and a port that is down."""
    cluster = new_cluster()
    cluster.gaudi(2, cards=2)
    for host in cluster.hosts.values():
        program(host, "dmesg", "dmesg", "main")
        program(host, "modinfo", "kmod_tools", "modinfo")
    fault(cluster["gaudi-2"], "needs-reset", "--card", "1")
    fault(cluster["gaudi-2"], "ecc-corrected", "--card", "0")
    return cluster


def play(cluster: Cluster, *arguments: str, **variables: Any) -> Any:
    return cluster.play(
        "health.yml", *arguments, health_directory=str(cluster.folder / "health"), health_expected_cards=2, **variables
    )


def hung(cluster: Cluster, teller: str, named: str) -> str:
    """A job of these nodes ended with a hang, and one of them tells who held it up."""
    sentence = f"Rank 1 on {named} did not enter all_reduce 7; the other rank waits."
    hang = {"sentence": sentence, "kind": "late", "certain": True, "ranks": [1], "nodes": [named], "at": time.time()}
    jobs, nodes = "/var/lib/gaudi3-scale/jobs", list(cluster.hosts)
    cluster[teller].write(f"{jobs}/.control/other/job.json", json.dumps({"specification": {"nodes": nodes}}))
    cluster[teller].write(f"{jobs}/other/status.json", json.dumps({"state": "failed", "hang": hang}))
    return sentence


def test_shadow_mode_reports_and_enforce_mode_fails(site: Cluster) -> None:
    before = {name: host.files() for name, host in site.hosts.items()}
    predicted = play(site, "--check", "--diff")
    assert predicted.returncode == 0, predicted.messages()
    assert not (site.folder / "health").exists()
    run = play(site)
    assert run.returncode == 0, run.messages()
    assert predicted.changed() == run.changed()
    assert {name: host.files() for name, host in site.hosts.items()} == before
    assert [host.acts() for host in site.hosts.values()] == [[], []]
    sound, sick = (run.result(name, "Examine the node") for name in ("gaudi-1", "gaudi-2"))
    assert (sound["healthy"], sound["verdicts"], sound["errors"], sound["readings"]) == (True, [], [], 1)
    assert sound["cpu_seconds"] <= 0.5
    assert (sick["healthy"], sick["drains"], sick["remedy"], sick["readings"]) == (False, True, "reset", 3)
    assert {(each["check"], each["component"]) for each in sick["verdicts"]} == {
        ("card-status", "accel1"),
        ("memory-corrected", "accel0"),
    }
    lines = run.result("gaudi-1", "Sum up")["msg"]
    assert lines[0] == "gaudi-1: healthy"
    assert "the driver says 'Needs reset'" in lines[1] and "(action: reset)" in lines[1]
    folder = site.folder / "health"
    assert sorted(path.name for path in folder.iterdir()) == [
        "gaudi-1.passport.json",
        "gaudi-1.report.json",
        "gaudi-2.report.json",
        "passports.key",
    ]
    assert json.loads((folder / "gaudi-2.report.json").read_text())["remedy"] == "reset"
    (folder / "fleet.json").write_text("{}")
    again = play(site, health_mode="enforce")
    assert "fleet.json: the state of the healing loop is not one of this version" in "".join(
        again.result("gaudi-1", "Sum up")["msg"]
    )
    (folder / "fleet.json").unlink()
    assert (again.returncode != 0, again.changed()) == (True, set())
    (said,) = [line for line in again.messages() if "not fit for work" in line]
    assert "gaudi-2 is not fit for work: accel1: the driver says 'Needs reset'" in said


def test_a_tool_that_hangs_costs_its_time_limit_and_blames_nobody(site: Cluster) -> None:
    fault(site["gaudi-1"], "hl-smi-hang")
    sentence = hung(site, "gaudi-1", "gaudi-1")
    try:
        before = time.monotonic()
        run = play(site, "--limit", "gaudi-1", health_mode="enforce", health_timeout=3)
        assert time.monotonic() - before < 60
    finally:
        fault(site["gaudi-1"], "hl-smi-hang", "--clear")
    assert run.returncode == 0, run.messages()
    result = run.result("gaudi-1", "Examine the node")
    assert (result["drains"], [each["component"] for each in result["errors"]]) == (False, ["hl-smi"])
    assert run.result("gaudi-1", "Sum up")["msg"][1] == f"gaudi-1 is a suspect: job other: {sentence}"
    state = json.loads((site.folder / "health/fleet.json").read_text())["nodes"]["gaudi-1"]
    assert (state["state"], state["suspected"]["other"]["sentence"]) == ("in service", sentence)


def test_what_means_nothing_is_refused(site: Cluster) -> None:
    run = play(site, health_mode="strict")
    assert run.returncode != 0
    assert any("health_mode is strict and health_depth is quick: give" in line for line in run.messages())
