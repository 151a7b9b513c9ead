"""Releases beside the default ones, and package sets that are broken though their signatures hold, as apt finds."""

from __future__ import annotations

import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError
from gaudi3_simulator.node import releases as known
from gaudi3_simulator.vendor import NOT_IN_MATRIX, RELEASES, Fault, build_repository

from .apt import Apt, served

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt-get of a Debian system")
OLD, NEW = "1.20.1-97", "1.24.1-482"


def install(
    tmp_path: Path, releases: tuple[str, ...], fault: Fault | None, *arguments: str, storage: str = "localhost"
) -> subprocess.CompletedProcess[str]:
    """`apt-get install` from a repository with a fault; the index is one host, the packages are on another."""
    repository = build_repository(tmp_path / "vendor", releases, fault)
    with served(repository.root, storage) as port:
        apt = Apt(tmp_path / "node", repository, port)
        update = apt("update")
        assert update.returncode == 0, update.stderr
        return apt("install", *arguments)


@pytest.mark.parametrize("release", [RELEASES[0], OLD])
def test_a_whole_set_installs_and_its_packages_come_by_redirect(tmp_path: Path, release: str) -> None:
    done = install(tmp_path, (release,), None, "--download-only", f"habanalabs-graph={release}")
    assert done.returncode == 0, done.stderr
    kept = {path.name.partition("_")[0] for path in (tmp_path / "node/cache/archives").glob("*.deb")}
    assert kept == {"habanalabs-graph", "habanalabs-thunk", "habanalabs-rdma-core"}


@pytest.mark.parametrize("release", [RELEASES[0], NEW])
def test_a_set_can_lack_a_package(tmp_path: Path, release: str) -> None:
    done = install(tmp_path, (release,), "missing-package", "--simulate", f"habanalabs-graph={release}")
    assert done.returncode == 100
    assert f"habanalabs-graph : Depends: habanalabs-thunk (= {release}) but it is not installable" in done.stdout


@pytest.mark.parametrize("release", [RELEASES[1], OLD])
def test_a_set_can_depend_on_a_build_that_is_not_there(tmp_path: Path, release: str) -> None:
    done = install(tmp_path, (release,), "unmet-depends", "--simulate", f"habanalabs-graph={release}")
    assert done.returncode == 100
    number, _, build = release.partition("-")
    wanted = f"{number}-{int(build) + 1}"
    assert f"habanalabs-graph : Depends: habanalabs-thunk (= {wanted}) but " in done.stdout


@pytest.mark.parametrize("release", [RELEASES[2], OLD])
def test_a_package_can_be_cut_short(tmp_path: Path, release: str) -> None:
    done = install(tmp_path, (release,), "truncated-package", "--download-only", f"habanalabs-graph={release}")
    assert done.returncode == 100
    assert f"habanalabs-thunk_{release}_all.deb" in done.stderr
    assert "unexpected size" in done.stderr or "Hash Sum mismatch" in done.stderr


@pytest.mark.parametrize("fault", ["missing-package", "unmet-depends", "truncated-package"])
def test_a_broken_set_is_mended_by_building_it_without_the_fault(tmp_path: Path, fault: Fault) -> None:
    install(tmp_path, (OLD,), fault, "--simulate", "habanalabs-thunk")
    shutil.rmtree(tmp_path / "node")
    done = install(tmp_path, (OLD,), None, "--download-only", f"habanalabs-graph={OLD}", storage="")
    assert done.returncode == 0, done.stderr


def test_one_release_is_in_no_support_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "collections"))
    matrix = import_module("ansible_collections.gaudi3.scale.plugins.module_utils._release.support_matrix")
    assert not {*RELEASES, OLD, NEW} - set(matrix.known_releases())
    sentence = matrix.release_problem(NOT_IN_MATRIX, "Ubuntu 22.04")
    assert sentence.startswith(f"SynapseAI release '{NOT_IN_MATRIX}' is not known to this collection; ")
    assert {"driver", "tool"} <= known.seen(NOT_IN_MATRIX)
    done = install(tmp_path, (NOT_IN_MATRIX,), None, "--download-only", "habanalabs-thunk")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("release", ["9.9.9-1", "1.23.0-696", "1.25.0", "1.23.0"])
def test_a_release_that_nobody_published_is_not_offered(tmp_path: Path, release: str) -> None:
    with pytest.raises(SimulatorError, match=rf"^The repository was asked for release {release}, .*: give one of 1"):
        build_repository(tmp_path / "vendor", [RELEASES[0], release])
