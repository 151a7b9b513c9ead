"""Nodes for the tests, and what every test is kept from: the networks that this machine happens to reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from simulated_machine import Machine, Machines, machines

from gaudi3_simulator import network


@pytest.fixture(scope="session")
def empty_routes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The routes of a machine that reaches nothing."""
    routes = tmp_path_factory.mktemp("proc") / "route"
    routes.write_text("Iface Destination Mask\n")
    return routes


@pytest.fixture(autouse=True)
def no_routes(empty_routes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that reaches nothing; a cluster that runs beside the tests has routes of its own."""
    monkeypatch.setattr(network, "_ROUTES", empty_routes)


@pytest.fixture(name="machines")
def the_machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Makes the nodes of one test."""
    with machines(monkeypatch) as made:
        yield made


@pytest.fixture
def bare(machines: Machines) -> Callable[..., Machine]:
    """Makes a booted node without any vendor package."""
    return machines.bare


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator whose clusters and packages are those of the test."""
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))
