"""Simulated hosts for the plays, and what several of their tests ask."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .cluster import Cluster

METADATA = "Metadata-Version: 2.1\nName: gaudi3-scale\nVersion: 0.1.0\nRequires-Python: >=3.9\n"


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
    path = tmp_path_factory.mktemp("wheel") / "gaudi3_scale-0.1.0-py3-none-any.whl"
    about = "gaudi3_scale-0.1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gaudi3_scale/__init__.py", "")
        archive.writestr(f"{about}/METADATA", METADATA)
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/entry_points.txt", "[console_scripts]\ngaudi3-train = gaudi3_scale:main\n")
        archive.writestr(f"{about}/RECORD", "")
    return str(path)
