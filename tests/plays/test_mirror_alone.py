"""PyTorch, wheels and their digests on a node that reaches a sealed mirror and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gaudi3_deploy.mirror import fill

from gaudi3_simulator.vendor.repository import build_repository
from tests.network_alone import ADDRESS, alone_with
from tests.stand_in_pytorch import PYTHON, RELEASE, TORCH, Vendor

from . import cluster as clusters


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a network: nothing was installed from a mirror alone")
def test_a_node_that_reaches_a_mirror_alone_installs_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor, folder = Vendor(tmp_path / "vendor"), tmp_path / "mirror"
    vendor.tarballs()
    build_repository(vendor.folder, (RELEASE,))
    pins = vendor.offer_usual()
    (tmp_path / "pins.txt").write_text("\n".join(pins))
    with vendor.served() as address:
        host, index = f"{address}/artifactory", f"{address}/pypi/simple"
        request = fill.Request(RELEASE, ("Ubuntu 22.04",), host, True, (tmp_path / "pins.txt",), PYTHON, index)
        lock, _fetched = fill.fill(folder, request, list[str]().append)
    site = clusters.Cluster(tmp_path / "site", cheap=False)
    site.gaudi(1, cards=1)
    site.all = {
        "gaudi_mirror": ADDRESS, "pytorch_python_versions": [PYTHON], "pytorch_packages": [],
        "pytorch_requirements": pins, "pytorch_user": "root", "pytorch_root": str(site.folder / "opt"),
    }  # fmt: skip
    before = (*alone_with(folder), *clusters.unprivileged())
    monkeypatch.setattr(clusters, "unprivileged", lambda: before)
    run = site.play("pytorch.yml")
    assert run.returncode == 0, (run.messages(), run.output)
    result = run.result("gaudi-1", "Install PyTorch")
    assert (result["torch"], result["done"]) == (TORCH, ["pytorch", "requirements", "link"])
    assert result["sha256"] in {each.sha256 for path, each in lock.files.items() if path.endswith(".tgz")}
