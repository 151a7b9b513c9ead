"""The built artifact: small, without links, installable, and its playbook runs by name from where it was installed."""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, run


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact")
    version = re.findall(r"^version: (\S+)", (ROOT / "galaxy.yml").read_text(), re.MULTILINE)[0]
    built = folder / f"gaudi3-scale-{version}.tar.gz"
    result = run(sys.executable, str(ROOT / "requirements/artifact.py"), str(ROOT), str(built))
    assert result.returncode == 0, result.stderr
    return built


def test_contains_the_collection_and_nothing_else(artifact: Path) -> None:
    with tarfile.open(artifact) as tar:
        members = tar.getmembers()
    assert artifact.stat().st_size < 2_700_000  # a fifth of it are documents and their pictures
    assert [member.name for member in members if member.issym() or member.islnk()] == []
    top = {member.name.split("/")[0] for member in members}
    assert top == {
        "CHANGELOG.md", "CONTRIBUTING.md", "FILES.json", "LICENSE", "MANIFEST.json", "README.md", "SECURITY.md",
        "benchmark-tool", "changelogs", "docs", "doctor", "examples", "meta", "migration", "playbooks", "plugins",
        "requirements", "roles", "terraform", "trainer", "watch",
    }  # fmt: skip
    names = {member.name for member in members}
    assert {name for name in names if name.startswith("requirements/")} == {
        "requirements/controller.in", "requirements/controller.txt",
    }  # fmt: skip
    assert {
        "trainer/pyproject.toml",
        "trainer/hatch_build.py",
        "doctor/pyproject.toml",
        "benchmark-tool/pyproject.toml",
        "migration/pyproject.toml",
        "terraform/aws/main.tf",
        "terraform/catalogue/instances.json",
    } <= names
    unwanted = re.compile(r"__pycache__|/tests/|\.tfstate|\.terraform/")
    assert [name for name in names if unwanted.search(name)] == []


def test_installs_and_runs_by_name(artifact: Path, tmp_path: Path) -> None:
    collections = tmp_path / "collections"
    (tmp_path / "ansible.cfg").write_text("")
    away: dict[str, Any] = {
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_INJECT_FACT_VARS": "False",
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


def test_every_link_in_its_documents_leads_to_a_file_in_it(artifact: Path) -> None:
    with tarfile.open(artifact) as tar:
        names = {member.name.rstrip("/") for member in tar.getmembers()}
        pages = {name: tar.extractfile(name) for name in names if name.endswith(".md")}
        texts = {name: page.read().decode() for name, page in pages.items() if page is not None}
    assert len(texts) > 20
    dead = []
    for name, text in texts.items():
        prose = re.sub(r"(?ms)^\s*```.*?^\s*```", "", text)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:|#", target):
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.partition("#")[0]))
            dead += [f"{name}: {target}"] if path not in names else []
    assert dead == []


def commands() -> list[str]:
    """The lines of the README's code block that begins with the collection's installation."""
    readme = (ROOT / "README.md").read_text()
    found: list[str] = re.findall(r"^```sh\n(ansible-galaxy .*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return found[0].splitlines()


def follow(lines: list[str], folder: Path, home: Path, config: Path | None) -> None:
    """Run them as a reader does, who puts nodes into the inventory on the way; the nodes do not answer."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    given |= {"HOME": str(home), "ANSIBLE_REMOTE_PORT": "1"} | ({"ANSIBLE_CONFIG": str(config)} if config else {})
    hosts = folder / "mine" / "hosts.yml"
    for line in lines:
        if line.startswith("export "):
            name, _sign, value = line.removeprefix("export ").partition("=")
            given[name] = value.replace("$PWD", str(folder))
            continue
        done = subprocess.run(line, shell=True, cwd=folder, env=given, capture_output=True, text=True, timeout=300)
        output = done.stdout + done.stderr
        if hosts.exists():
            hosts.write_text(re.sub(r"192\.0\.2\.\d+", "127.0.0.1", hosts.read_text()))
        # A sentence may be folded between words.
        said = " ".join(output.split())
        if "gaudi3.scale.doctor" in line:
            assert "gaudi-01, gaudi-02: does not answer: no ssh server" in said, f"{line}\n{output}"
        elif "gaudi3.scale.site" not in line:
            assert done.returncode == 0, f"{line}\n{output}"
        else:
            assert "3 of 3 hosts do not answer over ssh (gaudi-01, gaudi-02, monitor-01)" in said, f"{line}\n{output}"


def test_the_readmes_commands_work_in_an_empty_folder(artifact: Path, tmp_path: Path) -> None:
    folder, config = tmp_path / "empty", tmp_path / "ansible.cfg"
    folder.mkdir()
    config.touch()
    shutil.copy(artifact, folder)
    lines = commands()
    assert len(lines) >= 4
    follow(lines, folder, tmp_path / "home", config)


def test_the_readmes_commands_work_in_a_checkout(artifact: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    listed = run("git", "ls-files", "-co", "--exclude-standard").stdout.splitlines()
    for name in (name for name in listed if os.path.lexists(ROOT / name)):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name, follow_symlinks=False)
    shutil.copy(artifact, checkout)  # where `make build` puts it
    recipe = run("make", "--dry-run", "build", cwd=checkout).stdout
    assert f"requirements/artifact.py . {artifact.name}\n" in recipe
    links = checkout / "collections" / "ansible_collections" / "gaudi3" / "scale"
    before = sorted(path.name for path in links.iterdir())
    follow(commands()[:-1], checkout, tmp_path / "home", None)
    assert sorted(path.name for path in links.iterdir()) == before and (links / "playbooks").is_symlink()


def test_links_resolve_names_in_the_checkout() -> None:
    links = ROOT / "collections" / "ansible_collections" / "gaudi3" / "scale"
    entries = {path.name: path.is_symlink() for path in links.iterdir()}
    assert entries == dict.fromkeys(["galaxy.yml", "meta", "playbooks", "plugins", "roles", "trainer"], True)
