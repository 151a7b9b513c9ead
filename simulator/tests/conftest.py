"""What every test of the simulator is kept from: the networks that this machine happens to reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_simulator import network


@pytest.fixture(autouse=True)
def no_routes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that reaches nothing; a cluster that runs beside the tests has routes of its own."""
    routes = tmp_path_factory.mktemp("proc") / "route"
    routes.write_text("Iface Destination Mask\n")
    monkeypatch.setattr(network, "_ROUTES", routes)
    return routes
