"""The commands of versions: one sentence or a list, exit codes that a script can use, and nodes that Ansible asks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Deploy

NODE = ("--fact", "system=RHEL 9.4", "--fact", "driver=1.23.0-2eae87a")
OLD_PLUGIN = ("--fact", "plugin=1.22.0.740")


def test_what_a_wish_needs(deploy: Deploy) -> None:
    said = deploy.run("versions", "need", "torch=2.11", "system=rhel9.6")
    rows = {tuple(line.split()[:2]) for line in said.splitlines()}
    assert {("release", "1.24.1-482"), ("system", "RHEL"), ("torch", "2.11.0"), ("vllm", "0.26.0")} <= rows
    assert "as quoted by bossdeep/gaudi2-practical-inference on 2026-09-25" in said
    answer = json.loads(deploy.run("versions", "need", "torch=2.11", "system=rhel9.6", "--json"))
    assert (answer["schema"], answer["release"], answer["candidates"]) == (1, "1.24.1-482", ["1.24.1-482"])


def test_wishes_that_no_release_does(deploy: Deploy) -> None:
    said = deploy.run("versions", "need", "torch=2.11", "system=RHEL 9.4", code=1)
    assert said.splitlines()[0] == "No release does all of this."
    assert "Without PyTorch 2.11 it is 1.23.0-695, which goes with PyTorch 2.9.0." in said
    assert (
        json.loads(deploy.run("versions", "need", "torch=2.11", "system=RHEL 9.4", "--json", code=1))["release"] is None
    )


def test_a_node_whose_versions_go_together_or_not(deploy: Deploy) -> None:
    assert "\n  goes together\n" in deploy.run("versions", "check", *NODE)
    said = deploy.run("versions", "check", *NODE, *OLD_PLUGIN, code=1)
    assert "  forbidden    PyTorch's plugin of 1.22.0 and the loaded driver of 1.23.0 do not go together" in said
    assert said.endswith("  does not go together: change plugin first\n")
    kept = deploy.run("versions", "check", *NODE, *OLD_PLUGIN, "--keep", "plugin", code=1)
    assert kept.endswith("  does not go together: change driver first\n")


def test_what_check_writes_path_reads(deploy: Deploy) -> None:
    answer = json.loads(deploy.run("versions", "check", *NODE, *OLD_PLUGIN, "--json", code=1))
    node = answer["nodes"]["the node"]
    assert (node["consistent"], node["culprit"]) == (False, "plugin")
    (deploy.folder / "node.json").write_text(json.dumps(node))
    said = deploy.run("versions", "path", "--facts", "node.json")
    (deploy.folder / "all.json").write_text(json.dumps(answer))
    assert deploy.run("versions", "path", "--facts", "all.json") == said
    (deploy.folder / "two.json").write_text(json.dumps({"nodes": {"a": node, "b": node}}))
    refused = deploy.run("versions", "path", "--facts", "two.json", code=2)
    assert refused.startswith(
        "gaudi3-deploy: two.json has the versions of 2 nodes: give a file of one, or --inventory."
    )
    assert "  1. Install PyTorch 2.9.0 of 1.23.0-695\n" in said
    assert said.endswith("  0 changes, 0 boots: 1.23.0-695 on RHEL 9.4\n")


def test_the_way_to_a_wish(deploy: Deploy) -> None:
    said = deploy.run("versions", "path", *NODE, "--to", "torch=2.11")
    assert "  1. Upgrade RHEL 9.4 to RHEL 9.6, and boot it\n     because 1.24.1-482 goes with Ubuntu 22.04" in said
    assert "  2. Install 1.24.1-482 with its driver" in said and "     breaks: jobs have to stop" in said
    assert said.endswith("  2 changes, 1 boot: 1.24.1-482 on RHEL 9.6\n")
    answer = json.loads(deploy.run("versions", "path", *NODE, "--to", "torch=2.11", "--json"))
    assert [step["kind"] for step in answer["nodes"]["the node"]["steps"]] == ["system", "release"]


def test_no_way_is_a_failure_and_no_wrong_request(deploy: Deploy) -> None:
    said = deploy.run("versions", "path", *NODE, "--to", "system=Ubuntu 24.04", code=1)
    assert said.startswith("gaudi3-deploy: No way leads from 1.23.0-695 on RHEL 9.4 to system Ubuntu 24.04: no upgrade")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("need", "torch"), "The wish 'torch' is none: give NAME=VALUE, as torch=2.11."),
        (("need", "torch=2.9", "torch=2.10"), "torch is given twice: give it once."),
        (("need", "torch=9"), "torch 9 is in no matrix: give one of 2.11.0"),
        (("check",), "No versions are given: give --inventory, --facts FILE or --fact NAME=VALUE."),
        (("check", "--fact", "colour=red"), "colour is no fact of a node's versions: give some of"),
        (("check", "--facts", "none.yml"), "The versions in none.yml cannot be read ("),
        (("check", *NODE, "--inventory", "mine"), "Versions are asked of an inventory or given, not both"),
        (("check", *NODE, "--keep", "hat"), "--keep is 'hat': give one of image, plugin, vllm, driver, packages."),
        (("path", *NODE, "--to", "colour=red"), "'colour' is nothing to go to: give NAME=VALUE with one of release"),
        (("path", *NODE, "--keep", "image"), "image cannot be kept, as its release is not known"),
    ],
)
def test_a_wrong_request_is_one_sentence(deploy: Deploy, words: tuple[str, ...], said: str) -> None:
    answer = deploy.run("versions", *words, code=2)
    assert answer.startswith(f"gaudi3-deploy: {said}")
    assert len(answer.strip().splitlines()) == 1


def inventory(folder: Path, **hosts: str) -> None:
    interpreter = f"ansible_python_interpreter: {sys.executable}"
    lines = [f"    {name}: {{ansible_connection: {how}, {interpreter}}}" for name, how in hosts.items()]
    (folder / "hosts.yml").write_text("\n".join(["gaudi:", "  hosts:", *lines]) + "\n")


def test_the_nodes_of_an_inventory_are_asked(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.setenv("ANSIBLE_CONFIG", str(ROOT / "ansible.cfg"))
    inventory(deploy.folder, one="local", two="local")
    answer = json.loads(deploy.run("versions", "check", "--inventory", "hosts.yml", "--json"))
    assert sorted(answer["nodes"]) == ["one", "two"]
    assert answer["nodes"]["one"]["versions"]["kernel"] and answer["nodes"]["one"]["consistent"] is True
    inventory(deploy.folder, one="local", gone="no_such_connection")
    said = deploy.run("versions", "check", "--inventory", "hosts.yml", code=1)
    assert "gaudi3-deploy: gone does not tell its versions (" in said
    assert "There is no inventory none" in deploy.run("versions", "check", "--inventory", "none", code=2)
