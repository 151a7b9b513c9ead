"""Simulated hosts for the plays, and what several of their tests ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import stand_in_pytorch

from .cluster import Cluster


@pytest.fixture(scope="session")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the hardware of all tests' hosts is kept."""
    return tmp_path_factory.mktemp("boards")


@pytest.fixture(scope="module")
def new_cluster(tmp_path_factory: pytest.TempPathFactory, boards: Path) -> Callable[[], Cluster]:
    """Makes an empty cluster."""
    return lambda: Cluster(tmp_path_factory.mktemp("cluster") / "site", boards)


@pytest.fixture
def cluster(new_cluster: Callable[[], Cluster]) -> Cluster:
    """A cluster of the test's own, without hosts."""
    return new_cluster()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trainer that needs nothing, built already."""
    script = {"gaudi3_scale-0.1.0.dist-info/entry_points.txt": "[console_scripts]\ngaudi3-train = gaudi3_scale:main\n"}
    return str(stand_in_pytorch.wheel(tmp_path_factory.mktemp("wheel"), "gaudi3_scale", "0.1.0", files=script))
