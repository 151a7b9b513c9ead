"""A plan carried out on three booted nodes while they train, and the way back: equal losses, equal packages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_run import PlaybookRun
from tests.suite.proof import Proof

from .conftest import SMALL, Site, run, wait_for

OLD, NEW = "1.23.0-695", "1.24.0-1007"
KERNEL = "6.8.0-51-generic"
NODES = ("gaudi-1", "gaudi-2", "gaudi-3")
SPARE = NODES[-1]
STEPS, EVERY = 1500, 25
CARDS = 2
CASES = ["undisturbed", "up during a training", "back, idle"]
PROOF = Proof("upgrade", {"nodes": CASES}, sample=["none"])
pytestmark = pytest.mark.proof
TEXT = f"""
Three simulated nodes, booted, under the name of Ubuntu 24.04 with kernel {KERNEL}, and a job on two of them, the third
one being its spare. By a plan that `gaudi3-deploy` made of the doctor's reports and rehearsed, `gaudi3.scale.upgrade`
brings all of them from {OLD} to {NEW} while the job runs, and from there back with the nodes idle. Losses and gradient
norms of every line are those of a job of the same configuration that nothing disturbed; packages, versions and holds
after the way back are those from before.
It says nothing about how long an upgrade takes on hardware.
"""
JOB = {
    "trainer_processes_per_node": 1,
    "trainer_spares": 1,
    "trainer_max_restarts": 5,
    "trainer_config": {
        "device": "hpu",
        "model": SMALL,
        "train": {
            "mode": "eager", "strategy": "habana_fsdp", "max_steps": STEPS, "log_every": 5, "collective_timeout": 60,
            "threads": 1, "micro_batch_size": 2,
        },
        "checkpoint": {"every": EVERY},
        "data": {"validation_samples": 16},
    },
}  # fmt: skip
#: Nodes are behind no IOMMU that translates, after a restart that the role is allowed.
CONSENT = {
    "tuning_accept_translated_iommu": False,
    "tuning_kernel_command_line_state": "present",
    "tuning_reboot_allowed": True,
    "health_expected_cards": CARDS,
}


def play(site: Site, playbook: str, *arguments: str, **variables: Any) -> PlaybookRun:
    given = {**JOB, **CONSENT, **variables}
    return site.play_in(
        site.environment(), *arguments, "-e", json.dumps(given), playbook=f"gaudi3.scale.{playbook}", timeout=3000
    )


def must(found: PlaybookRun) -> PlaybookRun:
    assert found.returncode == 0, found.messages() or found.output
    return found


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site("upgrade")
    made.down()
    try:
        both = run("gaudi3-simulator", "repository", "--releases", f"{OLD},{NEW}", "--shelf", "pytorch")
        assert both.returncode == 0, both.stderr
        made.up(3, "--no-monitor", "--present-as", "ubuntu-24.04", "--kernel", KERNEL, "--cards", str(CARDS))
        yield made
    finally:
        made.down()
        run("gaudi3-simulator", "repository")


def lines(site: Site, job: str) -> dict[int, tuple[float, float]]:
    """Loss and gradient norm by step, of every node that wrote them."""
    found: dict[int, tuple[float, float]] = {}
    for node in NODES:
        text = site.ssh(node, f"cat /var/lib/gaudi3-scale/jobs/{job}/metrics.jsonl").stdout
        for line in text.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if "gradient_norm" in row:
                figures = (row["loss"], row["gradient_norm"])
                assert found.setdefault(row["step"], figures) == figures, (node, row["step"])
    return found


def statuses(site: Site, job: str) -> list[dict[str, Any]]:
    return [site.status(node, job) for node in NODES]


def finished(site: Site, job: str) -> bool:
    return any(each.get("state") == "finished" for each in statuses(site, job))


def resumed(site: Site, job: str) -> list[int]:
    """The steps that it went on from, as its nodes' journals have them."""
    script = f"journalctl -u gaudi-train-{job} -o cat | grep -o 'resuming from step [0-9]*'"
    said = [line for node in NODES for line in site.ssh(node, script).stdout.splitlines()]
    return sorted({int(line.rpartition(" ")[2]) for line in said})


def packages(site: Site) -> dict[str, str]:
    """Of the vendor, and what is held, by node."""
    script = "dpkg-query -W -f '${Package} ${Version}\\n' | grep habana; apt-mark showhold"
    script += "; cat /sys/module/habanalabs/version"
    return {node: site.ssh(node, script).stdout for node in NODES}


def planned(site: Site, folder: Path, release: str, *options: str) -> Path:
    """A rehearsed plan by reports of the nodes as they are."""
    must(play(site, "doctor", doctor_directory=str(folder / "reports"), doctor_quick=True))
    plan = folder / "plan.json"
    words = ["plan", release, "--reports", str(folder / "reports"), "--into", str(plan), "--spare", SPARE, *options]
    for command in (words, ["rehearse", str(plan), "--reports", str(folder / "reports")]):
        done = run("gaudi3-deploy", "upgrade", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    return plan


def carry_out(site: Site, folder: Path, plan: Path, job: str, **variables: Any) -> PlaybookRun:
    places = {"upgrade_directory": str(folder / "records"), "health_directory": str(folder / "health")}
    return must(play(site, "upgrade", upgrade_plan=str(plan), trainer_job_name=job, **places, **variables))


def test_a_fleet_goes_up_while_it_trains_and_back_to_what_it_was(site: Site, tmp_path: Path) -> None:
    must(play(site, "site", "--skip-tags", "monitoring", trainer_job_name="undisturbed"))
    reference = lines(site, "undisturbed")
    assert list(reference)[-1] == STEPS
    PROOF.note("undisturbed", {"what was seen": f"{STEPS} steps, loss {reference[STEPS][0]!r} at the last"})

    before = packages(site)
    pace = site.pace(0.3)
    must(play(site, "train", trainer_job_name="upgraded", trainer_state="started", **pace))
    wait_for(lambda: any(each.get("step", 0) > EVERY for each in statuses(site, "upgraded")), "its first checkpoint")
    plan = planned(site, tmp_path / "up", NEW, "--jobs", "move")
    began = time.monotonic()
    carry_out(site, tmp_path / "up", plan, "upgraded", **pace)
    took = time.monotonic() - began
    assert not finished(site, "upgraded"), f"the job was over before the upgrade was ({took:.0f} s): make it longer"
    wait_for(lambda: finished(site, "upgraded"), "the end of the job", 1200)
    found = lines(site, "upgraded")
    assert found == reference
    after = packages(site)
    assert all(NEW in each and OLD not in each for each in after.values()), after
    last = next(each for each in statuses(site, "upgraded") if each.get("state") == "finished")
    went_on = ", ".join(map(str, resumed(site, "upgraded")))
    seen = f"{len(NODES)} nodes; went on from steps {went_on} with {last['world_size']} processes; all figures equal"
    PROOF.note("up during a training", {"what was seen": seen})

    plan = planned(site, tmp_path / "back", OLD, "--allow-downgrade")
    carry_out(site, tmp_path / "back", plan, "upgraded")
    assert packages(site) == before
    PROOF.note("back, idle", {"what was seen": "packages, versions, holds and driver as before"})
    PROOF.write_table("An upgrade on nodes that train", TEXT, ("what was seen",))
