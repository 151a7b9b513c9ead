"""The built artifact: small, without links, installable, and its playbook runs by name from where it was installed."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, run


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact")
    result = run("ansible-galaxy", "collection", "build", "--output-path", str(folder))
    assert result.returncode == 0, result.stderr
    (built,) = folder.glob("gaudi3-scale-*.tar.gz")
    return built


def test_contains_the_collection_and_nothing_else(artifact: Path) -> None:
    with tarfile.open(artifact) as tar:
        members = tar.getmembers()
    assert artifact.stat().st_size < 2_000_000
    assert [member.name for member in members if member.issym() or member.islnk()] == []
    top = {member.name.split("/")[0] for member in members}
    assert top == {
        "CHANGELOG.md", "CONTRIBUTING.md", "FILES.json", "LICENSE", "MANIFEST.json", "README.md", "changelogs", "docs",
        "meta", "playbooks", "plugins", "roles", "terraform", "trainer",
    }  # fmt: skip
    names = {member.name for member in members}
    assert {"trainer/pyproject.toml", "terraform/aws/main.tf", "terraform/catalogue/instances.json"} <= names
    unwanted = re.compile(r"__pycache__|^trainer/tests|/tests/|\.tfstate|\.terraform/")
    assert [name for name in names if unwanted.search(name)] == []


def test_installs_and_runs_by_name(artifact: Path, tmp_path: Path) -> None:
    collections = tmp_path / "collections"
    (tmp_path / "ansible.cfg").write_text("")
    away: dict[str, Any] = {
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
    }
    install = ("ansible-galaxy", "collection", "install", str(artifact), "-p", str(collections), "--offline")
    result = run(*install, cwd=tmp_path, **away)
    assert result.returncode == 0, result.stderr
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {children: {gaudi: {hosts: {}}, gaudi_head: {hosts: {}}, monitoring: {hosts: {}}}}\n")
    play = ("ansible-playbook", "gaudi3.scale.site", "-i", str(inventory))
    result = run(*play, cwd=tmp_path, **away)
    # The playbook is found and its preflight speaks: an inventory without nodes is refused.
    assert result.returncode == 2
    assert "The inventory has no host in group gaudi" in result.stdout
    result = run(*play, "--list-tasks", cwd=tmp_path, **away)
    assert result.returncode == 0, result.stderr
    assert "gaudi3.scale.trainer : " in result.stdout
    # Machines are not made from here: the next installation would delete the state.
    wanted = {"name": "lab", "cloud": "onprem", "size": 8, "type": "onprem-gaudi3-8"}
    given = json.dumps({f"provision_{key}": value for key, value in wanted.items()})
    result = run("ansible-playbook", "gaudi3.scale.provision", "-e", given, cwd=tmp_path, **away)
    assert result.returncode == 2
    told = " ".join(result.stdout.split())
    assert "in an installed collection, whose next installation would delete the state: copy" in told


def test_links_resolve_names_in_the_checkout() -> None:
    links = ROOT / "collections" / "ansible_collections" / "gaudi3" / "scale"
    entries = {path.name: path.is_symlink() for path in links.iterdir()}
    assert entries == dict.fromkeys(["galaxy.yml", "meta", "playbooks", "plugins", "roles", "trainer"], True)
