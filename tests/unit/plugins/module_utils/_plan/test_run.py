"""Which phases a run has by its tags, and whose variables it checks."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run


def run(tags: str = "all", skipped: str = "") -> Run:
    return Run.of(filter(None, tags.split(",")), filter(None, skipped.split(",")))


@pytest.mark.parametrize(
    ("tags", "skipped", "phase", "others", "has"),
    [
        ("all", "", "tuning", (), True),
        ("", "", "tuning", (), True),
        ("all", "tuning", "tuning", (), False),
        ("tuning", "", "tuning", (), True),
        ("drivers", "", "tuning", (), False),
        ("preflight", "", "tuning", ("preflight",), True),
        ("preflight", "tuning", "tuning", ("preflight",), False),
        ("train", "", "pytorch", ("train",), True),
    ],
)
def test_a_run_has_a_phase(tags: str, skipped: str, phase: str, others: tuple[str, ...], has: bool) -> None:
    assert run(tags, skipped).has(phase, *others) is has


@pytest.mark.parametrize(
    ("tags", "skipped", "has"),
    [
        ("all", "", True),
        ("all", "pytorch", True),
        ("train", "", True),
        ("trainer_job", "", True),
        ("preflight", "", True),
        ("tuning,drivers,fabric,pytorch", "", False),
        ("trainer_install", "", False),
        *(("all", each, False) for each in ("train", "trainer", "trainer_job")),
        ("preflight", "train", False),
    ],
)
def test_a_run_has_jobs_where_it_trains(tags: str, skipped: str, has: bool) -> None:
    assert run(tags, skipped).has_jobs is has


@pytest.mark.parametrize(
    ("tags", "needed"),
    [
        ("all", True),
        ("preflight", True),
        ("train,monitoring", True),
        ("monitoring", False),
        ("firewall_preflight,prometheus_targets", False),
        ("hpu_exporter", False),
    ],
)
def test_what_watches_hosts_needs_no_card(tags: str, needed: bool) -> None:
    assert run(tags).needs_cards is needed


@pytest.mark.parametrize(
    ("tags", "skipped", "trains", "roles"),
    [
        ("all", "", True, "synapseai fabric trainer tuning firewall pytorch node_exporter hpu_exporter"),
        ("all", "pytorch,monitoring", True, "synapseai fabric trainer tuning firewall"),
        ("preflight", "", True, "synapseai fabric trainer tuning firewall pytorch node_exporter hpu_exporter"),
        ("drivers", "", True, "synapseai fabric trainer"),
        ("firewall", "", True, "firewall"),
        ("monitoring", "", True, "node_exporter hpu_exporter"),
        ("all", "", False, "firewall node_exporter"),
        ("drivers", "", False, ""),
        ("monitoring", "", False, "node_exporter"),
        ("node_exporter_install", "", False, "node_exporter"),
        ("pytorch_install", "", True, "synapseai fabric trainer pytorch"),
    ],
)
def test_the_roles_whose_variables_are_checked(tags: str, skipped: str, trains: bool, roles: str) -> None:
    assert run(tags, skipped).roles(trains) == tuple(roles.split())


def test_single_phases_and_the_preflight_alone() -> None:
    assert run().whole and not run("tuning").whole
    assert run("preflight").only_preflight and not run("preflight,tuning").only_preflight
    assert run("train").meets and not run("drivers").meets
