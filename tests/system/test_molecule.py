"""Molecule scenarios. The roles' share one cluster, and the end-to-end run goes to one that is in order already.

One scenario runs as a user starts it, with a cluster made and removed by molecule. The others are given the
configuration that all scenarios share, with two changes: the name of a running cluster, and no create and destroy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.ansible_run import ANSIBLE_PLAYBOOK
from tests.suite.proof import Proof, in_turn

from .conftest import ROOT, STAGE, Site, cluster_from, run

FOLDER = ROOT / "extensions" / "molecule"
SCENARIOS = sorted(path.parent.name for path in FOLDER.glob("*/molecule.yml"))
AS_A_USER = "tuning"
END_TO_END = "default"
# An older release is installed first, so it comes first; the others find the driver in place, or need none.
ROLES = sorted(set(SCENARIOS) - {AS_A_USER, END_TO_END}, key=lambda name: (name != "synapseai", name))
#: So many of the scenarios with each commit, beside the one from nothing.
IN_TURN = 2
CASES = [*ROLES, END_TO_END]
PROOF = Proof(
    "molecule",
    {"scenarios": CASES},
    sample=in_turn(CASES, IN_TURN),
)
TEXT = """
A role on a simulated node, by molecule: converged, converged again without a change, and verified with testinfra; and
the whole site, converged on nodes that are in order and verified. A scenario from nothing to nothing is run with the
other tests, each time.
"""


def test_every_role_has_a_scenario_with_tests() -> None:
    # What several roles import is tried by their scenarios, and the page, which shows what Prometheus has, end to end.
    # The role data plays in tests/plays: for it a node has neither an NFS server nor an object store. The timer of
    # backups with the real restic is in tests/unit/roles, as a machine that is lost is a folder there.
    others = {"backup", "data", "monitoring_service", "watch"}
    roles = {path.name for path in (ROOT / "roles").iterdir()} - others
    assert (FOLDER / END_TO_END / "tests/test_page_of_the_cluster.py").exists()
    assert set(SCENARIOS) == roles | {END_TO_END}
    for scenario in SCENARIOS:
        assert list((FOLDER / scenario / "tests").glob("test_*.py")), scenario


@pytest.fixture(scope="module")
def cluster() -> Iterator[Site]:
    """One bare Gaudi node and a monitoring host, for the scenarios of all roles."""
    site = Site("test-roles")
    site.down()
    try:
        site.up(1)
        yield site
    finally:
        site.down()


def molecule(scenario: str, cluster: str, sequence: list[str], folder: Path, *arguments: str) -> None:
    """Run ``molecule test`` on a running cluster, as far as ``sequence``, with more arguments of ansible-playbook."""
    config = yaml.safe_load((FOLDER / "config.yml").read_text())
    config["ansible"]["env"]["GAUDI3_SIMULATOR_CLUSTER"] = cluster
    config["scenario"]["test_sequence"] = sequence
    config["ansible"]["executor"]["args"]["ansible_playbook"] += arguments
    base = folder / "config.yml"
    base.write_text(yaml.safe_dump(config))
    program = folder / "bin" / "ansible-playbook"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(ANSIBLE_PLAYBOOK)} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    command = ("molecule", "--base-config", str(base), "test", "--scenario-name", scenario)
    # In its usual folder molecule notes, for all later runs, that nodes are prepared; those of this run are new.
    result = run(*command, timeout=1500, PATH=path, MOLECULE_EPHEMERAL_DIRECTORY=str(folder / "state"))
    said = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout + result.stderr)
    assert result.returncode == 0, said[-8000:]
    for step in sequence:
        assert f"{scenario} ➜ {step}: Executed: Successful" in said, said[-8000:]


def test_a_scenario_from_nothing_to_nothing(tmp_path: Path) -> None:
    name = f"mol-{AS_A_USER}"
    try:
        result = run("molecule", "test", "--scenario-name", AS_A_USER, timeout=1500)
        assert result.returncode == 0, (result.stdout + result.stderr)[-8000:]
        assert f" {name} " not in f" {run('gaudi3-simulator', 'status').stdout} "
    finally:
        run("gaudi3-simulator", "down", "--name", name)


@pytest.mark.parametrize("scenario", [pytest.param(name, marks=PROOF.marks(name)) for name in ROLES])
def test_a_role(scenario: str, cluster: Site, tmp_path: Path) -> None:
    PROOF.skip_if_held(scenario)
    steps = ["converge", "idempotence", "verify"]
    prepare = ["prepare"] if (FOLDER / scenario / "prepare.yml").exists() else []
    molecule(scenario, cluster.name, prepare + steps, tmp_path)
    keep(scenario, prepare + steps)


@PROOF.sampled(END_TO_END)
def test_end_to_end(tmp_path: Path) -> None:
    """Runs on bare nodes, and a second one that changes nothing, are in test_site.py, whose cluster this is, saved."""
    PROOF.skip_if_held(END_TO_END)
    steps = ["converge", "verify"]
    with cluster_from(STAGE, "test-end-to-end") as site:
        molecule(END_TO_END, site.name, steps, tmp_path, *site.always)
    keep(END_TO_END, steps)


def keep(scenario: str, steps: list[str]) -> None:
    """Put down that a scenario held."""
    PROOF.note(scenario, {"steps": ", ".join(steps)})
    PROOF.write_table("The roles, by molecule", TEXT, ("steps",))
