"""PyTorch through the real role and playbooks: refused before the first change, installed, left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand_in_pytorch import PYTHON, TORCH, Vendor

from ..ansible_run import PlaybookRun
from .cluster import Cluster

#: What Ubuntu 22.04's Python says of itself.
JAMMY = """#!/bin/sh
echo '{"version": "3.10.12", "purelib": "/usr/lib/python3/dist-packages", "venv": true, "distributions": {}}'
"""
#: And Debian 13's, or that of any system that is newer than the vendor's.
TRIXIE = JAMMY.replace("3.10.12", "3.13.5")


def where(address: str, root: Path, **more: Any) -> dict[str, Any]:
    """A site's variables for a mirror; whose user is root, as the folders of tests are closed to others."""
    return {
        "pytorch_repository_url": f"{address}/artifactory/gaudi-pt-modules",
        "pytorch_pip_index_url": f"{address}/pypi/simple",
        "pytorch_python_versions": [PYTHON],
        "pytorch_packages": [],
        "pytorch_root": str(root),
        "pytorch_user": "root",
        **more,
    }


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Vendor:
    made = Vendor(tmp_path_factory.mktemp("vendor"))
    made.tarballs()
    return made


@pytest.fixture(scope="module")
def site(new_cluster: Callable[[], Cluster], vendor: Vendor) -> Iterator[Cluster]:
    """A node with driver, and a vendor."""
    cluster = new_cluster()
    cluster.gaudi(1, cards=1)
    with vendor.served() as address:
        cluster.all = where(address, cluster.folder / "opt", pytorch_requirements=vendor.offer_usual())
        yield cluster


@pytest.fixture(scope="module")
def first(site: Cluster) -> PlaybookRun:
    return site.play("pytorch.yml", "--diff")


def test_the_vendors_pytorch_is_installed(site: Cluster, first: PlaybookRun) -> None:
    assert first.returncode == 0, (first.messages(), first.output)
    assert first.changed() == {("gaudi-1", "gaudi3.scale.pytorch : Install PyTorch")}
    result = first.result("gaudi-1", "Install PyTorch")
    assert (result["torch"], result["done"]) == (TORCH, ["pytorch", "requirements", "link"])
    assert result["diff"]["after"].startswith("torch-1.23.0-695\npytorch_modules-v2.9.0_1.23.0_695.tgz\n")
    (warning,) = [each for each in result["warnings"] if "trusted on first use" in each]
    assert f"its SHA-256 is {result['sha256']}; set pytorch_sha256 to it" in warning
    assert any(each.startswith("Beside the vendor's PyTorch: lightning 2.6.6 has req") for each in result["warnings"])
    assert (site.folder / "opt/torch/bin/pip").exists()


def test_a_second_run_changes_nothing_and_asks_nobody(site: Cluster, first: PlaybookRun) -> None:
    """Its preflight included; pinned to the file that is there."""
    nobody = where(
        "http://127.0.0.1:9", site.folder / "opt", pytorch_sha256=first.result("gaudi-1", "PyTorch")["sha256"]
    )
    run = site.play("site.yml", "--tags", "pytorch", **nobody)
    assert run.returncode == 0, (run.messages(), run.output)
    assert run.changed() == set()
    assert not [name for _host, name, _result in run.results() if "Install" in name]
    assert "trusted" not in run.everything


def test_what_is_in_the_way_stops_all_before_the_first_change(cluster: Cluster, vendor: Vendor) -> None:
    """Each node for a reason of its own, and the one that is well, too."""
    cluster.gaudi(6, cards=1)
    for name, text in (("gaudi-2", JAMMY), ("gaudi-5", TRIXIE)):
        python = cluster[name].folder / "own-python"
        python.write_text(text)
        python.chmod(0o755)
    pins = vendor.offer_usual()
    with vendor.served() as address:
        cluster.all = where(address, cluster.folder / "opt", pytorch_requirements=pins)
        for name in ("gaudi-2", "gaudi-5"):
            cluster.variables[name]["pytorch_python"] = str(cluster[name].folder / "own-python")
        cluster.variables["gaudi-3"]["pytorch_repository_url"] = "http://127.0.0.1:9/pt"
        cluster.variables["gaudi-4"].update(pytorch_state="preinstalled", pytorch_python="/usr/bin/python3")
        cluster.variables["gaudi-6"].update(pytorch_release="1.24.0-1007", synapseai_release="1.23.0-695")
        run = cluster.play("site.yml", "--tags", "tuning,pytorch")
    assert run.returncode != 0
    assert run.changed() == set()
    told = {host: result["msg"] for host, _name, result in run.results() if result.get("failed")}
    assert sorted(told) == ["gaudi-2", "gaudi-3", "gaudi-4", "gaudi-5", "gaudi-6"]
    assert told["gaudi-6"] == (
        "pytorch_release is 1.24.0-1007, but the driver's release is 1.23.0-695, and both have to be the same: leave "
        "pytorch_release out, or set synapseai_release to 1.24.0-1007."
    )
    assert told["gaudi-2"].startswith(
        "Ubuntu 22.04's Python 3.10 is too old for the trainer, which needs 3.11 or newer:"
    )
    assert told["gaudi-3"].startswith(
        "127.0.0.1 cannot be reached for http://127.0.0.1:9/pt/1.23.0/695/pytorch/ubuntu2204/"
    )
    assert told["gaudi-4"].startswith(
        "/usr/bin/python3 has no torch: set pytorch_state to present to have the vendor's"
    )
    assert told["gaudi-5"] == (
        f"The vendor's PyTorch of release 1.23.0-695 for ubuntu2204 is for Python {PYTHON}, but pytorch_python is "
        "3.13: set pytorch_python to one of these, or leave PyTorch and training out with --skip-tags pytorch,train."
    )
    assert not (cluster.folder / "opt").exists()
