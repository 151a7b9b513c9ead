"""What every test of the simulator is kept from: the networks that this machine happens to reach."""

from __future__ import annotations

from pathlib import Path

import pytest

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
