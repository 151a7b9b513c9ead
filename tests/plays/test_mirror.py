"""A site that installs from a sealed mirror: one variable names it, and whatever in it is not right stops the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gaudi3_deploy.mirror import fill

from gaudi3_simulator.vendor.repository import build_repository
from tests.served_folder import served
from tests.stand_in_pytorch import PYTHON, RELEASE, TORCH, Vendor

from ..ansible_run import PlaybookRun
from .cluster import Cluster

TARBALL = "artifactory/gaudi-pt-modules/1.23.0/695/pytorch/ubuntu2204/pytorch_modules-v2.9.0_1.23.0_695.tgz"
VENDOR = "https://vault.habana.ai/artifactory"


class Mirror:
    """A mirror that a vendor's host was fetched into, and a node that knows no other address."""

    def __init__(self, folder: Path, address: str, cluster: Cluster, pins: list[str]) -> None:
        self.folder, self.address, self.cluster = folder, address, cluster
        self.sealed = (folder / "lock.json").read_text()
        cluster.all = {
            "gaudi_mirror": f"{address}/", "pytorch_python_versions": [PYTHON], "pytorch_packages": [],
            "pytorch_requirements": pins, "pytorch_user": "root", "pytorch_root": str(cluster.folder / "opt"),
        }  # fmt: skip

    def refused(self, playbook: str = "site.yml", *arguments: str, **more: object) -> list[str]:
        """What a run says that is to install into a folder where nothing is yet, and changes nothing there."""
        root = self.cluster.folder / "other"
        run = self.cluster.play(playbook, *arguments, **{"pytorch_root": str(root), **more})  # type: ignore[arg-type]
        assert run.returncode != 0 and run.changed() == set() and not (root / "torch").exists()
        return run.messages()


@pytest.fixture(scope="module")
def mirror(new_cluster: Callable[[], Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    vendor, folder = Vendor(tmp_path_factory.mktemp("vendor")), tmp_path_factory.mktemp("mirror") / "mirror"
    vendor.tarballs()
    build_repository(vendor.folder, (RELEASE,))
    pins = vendor.offer_usual()
    requirements = vendor.root / "requirements.txt"
    requirements.write_text("\n".join(pins))
    with vendor.served() as address:
        host, index = f"{address}/artifactory", f"{address}/pypi/simple"
        request = fill.Request(RELEASE, ("Ubuntu 22.04",), host, True, (requirements,), PYTHON, index)
        fill.fill(folder, request, list[str]().append)
    cluster = new_cluster()
    cluster.gaudi(1, cards=1)
    with served(folder) as address:
        yield Mirror(folder, address, cluster, pins)


@pytest.fixture(scope="module")
def installed(mirror: Mirror) -> PlaybookRun:
    return mirror.cluster.play("pytorch.yml", "--diff")


def test_one_variable_has_all_installed_from_the_mirror(mirror: Mirror, installed: PlaybookRun) -> None:
    assert installed.returncode == 0, (installed.messages(), installed.output)
    result = installed.result("gaudi-1", "Install PyTorch")
    assert (result["torch"], result["done"]) == (TORCH, ["pytorch", "requirements", "link"])
    sealed = {each["path"]: each["sha256"] for each in json.loads(mirror.sealed)["files"]}
    assert result["sha256"] == sealed[TARBALL]
    assert "trusted on first use" not in installed.everything, "the lock has the digest"


def test_a_second_run_asks_neither_the_mirror_nor_anybody(mirror: Mirror, installed: PlaybookRun) -> None:
    # Its packages are from elsewhere, as what a site sets itself comes before the mirror.
    gone = mirror.cluster.play(
        "site.yml", "--tags", "pytorch", gaudi_mirror="http://127.0.0.1:9",
        synapseai_repository_url=f"{VENDOR}/debian", synapseai_key_url=f"{VENDOR}/api/gpg/key/public",
    )  # fmt: skip
    assert gone.returncode == 0, (gone.messages(), gone.output)
    assert gone.changed() == set()


def test_a_mirror_that_does_not_fit_is_refused_before_anything_changes(mirror: Mirror) -> None:
    nowhere = mirror.refused("site.yml", "--tags", "pytorch", gaudi_mirror="http://127.0.0.1:9")
    assert nowhere == [
        "The mirror http://127.0.0.1:9 does not hand out its lock.json ([Errno 111] Connection refused): open the "
        "way to it from this host, or correct gaudi_mirror."
    ]
    lock = mirror.folder / "lock.json"
    try:
        lock.write_text(mirror.sealed.replace(f'"{RELEASE}"', '"1.24.0-1007"'))
        other = mirror.refused("site.yml", "--tags", "pytorch")
    finally:
        lock.write_text(mirror.sealed)
    assert other == [
        f"The mirror {mirror.address} is of release 1.24.0-1007, and synapseai_release is {RELEASE}: set "
        "synapseai_release to the mirror's release, or gaudi_mirror to another mirror."
    ]


def test_one_flipped_byte_and_a_missing_file_are_refused_by_name(mirror: Mirror) -> None:
    torch = mirror.folder / TARBALL
    content = torch.read_bytes()
    try:
        torch.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        (flipped,) = mirror.refused("pytorch.yml")
        torch.unlink()
        (missing,) = mirror.refused("pytorch.yml")
    finally:
        torch.write_bytes(content)
    right = hashlib.sha256(content).hexdigest()
    assert flipped.startswith(f"{mirror.address}/{TARBALL} has SHA-256 ")
    assert f", not {right} as lock.json of the mirror says: find out which is right" in flipped
    assert missing.startswith(f"127.0.0.1 answers 404 for {mirror.address}/{TARBALL}")


def test_the_signed_packages_are_the_mirrors(mirror: Mirror) -> None:
    host = mirror.cluster["gaudi-1"]
    verifier = host.folder / "bin/gpgv"
    verifier.write_text('#!/bin/sh\nexec /usr/bin/gpgv "$@"\n')
    verifier.chmod(0o755)
    host.path("/usr/share/keyrings/habana-artifactory.gpg").unlink()  # of another vendor
    run = mirror.cluster.role("synapseai", "--check", "--tags", "synapseai_install")
    assert run.returncode == 0, run.messages()
    judged = run.result("gaudi-1", "Judge release, operating system, packages and running driver")
    planned = judged["found"]["packages"]
    assert (planned["done"], {each["version"] for each in planned["packages"]}) == (["key", "files"], {RELEASE})
    assert f"] {mirror.address}/artifactory/debian jammy main" in planned["diff"][0]["after"]
    index = mirror.folder / "artifactory/debian/dists/jammy/main/binary-amd64/Packages.gz"
    content = index.read_bytes()
    try:
        index.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        flipped = mirror.cluster.role("synapseai", "--check", "--tags", "synapseai_install")
    finally:
        index.write_bytes(content)
    assert flipped.returncode != 0 and flipped.changed() == set()
    assert flipped.messages() == [
        f"{mirror.address}/artifactory/debian/dists/jammy/main/binary-amd64/Packages.gz is not what the signed "
        "InRelease says (SHA-256 differs); do not install from it before its owner has explained the change."
    ]
