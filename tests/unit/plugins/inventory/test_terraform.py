"""The inventory plugin as ansible-inventory and ansible-playbook use it; terraform itself is a stand-in here."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..clusters import intent, nodes, outputs, state

ROOT = Path(__file__).resolve().parents[4]
NAMES = ["big-01", "big-02", "big-monitor"]
#: Of the ansible-core that runs the tests, and of the others that the collection accepts, where they are installed.
CORES = [Path(sys.executable).parent, *sorted(ROOT.glob(".cache/core-matrix/*/bin"))]


def ansible(
    program: str, *arguments: str, core: Path = CORES[0], **more: str
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    command = [str(core / program), *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "500", **more}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip


class Source:
    """A folder with an inventory source of the plugin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mine.terraform.yml"

    def keep(self, name: str, content: Any) -> str:
        """Write a file beside the source; its name."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return name

    def terraform(self, script: str) -> str:
        """A stand-in for terraform."""
        path = self.folder / "terraform-stand-in"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def give(self, **options: Any) -> str:
        """Write the source."""
        self.path.write_text(yaml.safe_dump({"plugin": "gaudi3.scale.terraform", **options}))
        return str(self.path)

    def list(self, **options: Any) -> dict[str, Any]:
        """The inventory; strings that a plugin gives are marked as no templates, which is taken off."""
        done = ansible("ansible-inventory", "-i", self.give(**options), "--list")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout, object_hook=lambda read: read.get("__ansible_unsafe", read)))

    def refused(self, **options: Any) -> str:
        """The sentence that it is refused with; nothing is put out beside it."""
        done = ansible("ansible-inventory", "-i", self.give(**options), "--list")
        assert (done.returncode, done.stdout) == (4, ""), done.stderr
        prefix = f"[ERROR]: {self.path}: "
        assert done.stderr.startswith(prefix), done.stderr
        return done.stderr.removeprefix(prefix).strip().replace(str(self.folder), "HERE")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def test_what_terraform_put_out(source: Source) -> None:
    listed = source.list(output_file=source.keep("outputs.json", outputs()))
    assert listed["gaudi"]["hosts"] == ["big-01", "big-02"]
    assert listed["gaudi_head"]["hosts"] == ["big-01"]
    assert listed["monitoring"]["hosts"] == ["big-monitor"]
    assert listed["_meta"]["hostvars"]["big-02"] == {
        "ansible_local": {},  # of ansible-inventory itself
        "ansible_become": True,
        "ansible_host": "10.42.16.6",
        "ansible_user": "ubuntu",
        "gaudi_checkpoint_target": "s3://big-1/checkpoints",
        "gaudi_cloud": "aws",
        "gaudi_cluster": "big",
        "gaudi_cluster_address": "10.42.16.6",
        "gaudi_instance_id": "i-6",
        "gaudi_instance_type": "dl1.24xlarge",
        "gaudi_market": "spot",
        "gaudi_region": "us-west-2",
        "gaudi_zone": "us-west-2a",
    }


def test_a_state_file_and_an_output_file_say_the_same(source: Source) -> None:
    held = state(outputs(), intent(NAMES, 3), nodes("big-01", "big-02"))
    assert source.list(state_file=source.keep("terraform.tfstate", held)) == source.list(
        output_file=source.keep("outputs.json", outputs())
    )


@pytest.mark.parametrize("core", CORES, ids=[each.parent.name for each in CORES])
def test_values_are_no_templates_and_ssh_takes_its_arguments(source: Source, core: Path) -> None:
    marker, called = source.folder / "marker", source.folder / "called"
    said = outputs(jump_host="ops@gate", variables={"gaudi_note": "a { b }"})
    endpoints = said["cluster_endpoints"]["value"]
    endpoints["big-01"].update(connect_to="192.0.2.5")
    options = {
        "compose": {"gaudi_place": "gaudi_zone ~ '!'"},
        "keyed_groups": [{"key": "gaudi_market", "prefix": "market"}],
    }
    inventory = source.give(output_file=source.keep("outputs.json", said), **options)
    values = "gaudi_zone, gaudi_note, gaudi_place, group_names"
    shown = ansible(
        "ansible", "-i", inventory, "big-01", "-m", "debug", "-a", f"msg={{{{ [{values}] }}}}", core=core
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    told = yaml.safe_load(shown.stdout.partition("=>")[2])["msg"]
    assert told == ["us-west-2a", "a { b }", "us-west-2a!", ["aws", "gaudi", "gaudi_head", "market_on_demand"]]
    # The way to a machine is such values, too.
    ssh = source.folder / "ssh-stand-in"
    ssh.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{called}\nexit 255\n")
    ssh.chmod(0o755)
    ansible("ansible", "-i", inventory, "big-01", "-m", "ping", core=core, ANSIBLE_SSH_EXECUTABLE=str(ssh))
    arguments = called.read_text().splitlines()
    assert {"ProxyJump=ops@gate", 'User="ubuntu"', "192.0.2.5"} <= set(arguments)
    # Nobody who writes the state has a template run, here or after an export: it is refused.
    endpoints["big-01"].update(zone=f"{{{{ lookup('pipe', 'touch {marker}') }}}}")
    source.give(output_file=source.keep("outputs.json", said), **options)
    refused = ansible("ansible", "-i", inventory, "big-01", "-m", "debug", "-a", "var=gaudi_zone", core=core)
    said_so = " ".join(refused.stderr.split())  # 2.17 breaks lines, by the length of the folder's name
    assert (refused.returncode, "says of big-01 that its zone is '{{ lookup" in said_so) == (4, True)
    assert not marker.exists()


def test_ssh_goes_by_a_configuration_that_knows_machines_by_their_ids(source: Source) -> None:
    said = outputs(jump_host="ops@gate")
    said["cluster_endpoints"]["value"]["big-02"].update(instance_id=None, jump_host="none")
    given = {"output_file": source.keep("outputs.json", said), "ssh_config": "with space/config"}
    assert source.refused(**given) == (
        "ssh_config is HERE/with space/config, which is not there: run provision.yml again, or leave it out."
    )
    source.keep("with space/config", "Host *\n")
    hosts = source.list(**given)["_meta"]["hostvars"]
    config = f"-F '{source.folder}/with space/config'"
    assert {name: about["ansible_ssh_common_args"] for name, about in hosts.items()} == {
        "big-01": f"{config} -o ProxyJump=ops@gate -o HostKeyAlias=i-5",
        "big-02": f"{config} -o ProxyJump=none",
        "big-monitor": f"{config} -o ProxyJump=ops@gate -o HostKeyAlias=i-4",
    }


@pytest.mark.parametrize("core", CORES, ids=[each.parent.name for each in CORES])
def test_the_documented_command_gives_the_same_as_a_file(source: Source, core: Path) -> None:
    """For who had it as Terraform's output, and runs Ansible where neither Terraform nor the plugin is."""
    text = (ROOT / "docs/clouds/terraform.md").read_text()
    (command,) = re.findall(r"^ansible-inventory -i \S+ (.*) > hosts\.yml$", text, re.MULTILINE)
    said = outputs(jump_host="ops@gate", variables={"gaudi_note": "a { b }"})
    listed = source.list(output_file=source.keep("outputs.json", said))
    done = ansible("ansible-inventory", "-i", str(source.path), *command.split(), core=core)
    assert done.returncode == 0, done.stderr
    hosts = source.folder / source.keep("exported/hosts.yml", done.stdout)
    again = ansible("ansible-inventory", "-i", str(hosts), "--list", core=core)
    read = json.loads(again.stdout, object_hook=lambda read: read.get("__ansible_unsafe", read))
    for group in ("gaudi", "gaudi_head", "monitoring", "aws"):
        assert sorted(read[group]["hosts"]) == sorted(listed[group]["hosts"]), group
    for name, wanted in listed["_meta"]["hostvars"].items():
        has = read["_meta"]["hostvars"][name]
        assert {key: has[key] for key in wanted if key != "ansible_local"} == {
            key: value for key, value in wanted.items() if key != "ansible_local"
        }, again.stderr


def test_outputs_of_an_earlier_release_are_refused_with_the_new_names(source: Source) -> None:
    said = outputs(ssh_arguments="-o ProxyJump=ops@gate")
    assert source.refused(output_file=source.keep("outputs.json", said)) == (
        "HERE/outputs.json gives ssh_arguments, as an earlier release of the modules did, in place of jump_host and "
        "connection in the output cluster: bring the outputs up to date with 'terraform apply', which changes no "
        "machine."
    )


def test_an_address_that_is_an_option_of_ssh_is_refused(source: Source) -> None:
    said = outputs()
    said["cluster_endpoints"]["value"]["big-01"]["connect_to"] = "-oProxyCommand=touch x"
    assert source.refused(output_file=source.keep("outputs.json", said)) == (
        "HERE/outputs.json says of big-01 that its connect_to is '-oProxyCommand=touch x', which cannot be: look who "
        "writes Terraform's state, and correct it there."
    )


def test_two_clouds_and_a_group_of_ones_own(source: Source) -> None:
    two = [
        {"output_file": source.keep("aws.json", outputs("aws"))},
        {"output_file": source.keep("ibm.json", outputs("ibm")), "label": "rented"},
    ]
    listed = source.list(sources=two, groups={"spot": "gaudi_market | default('') == 'spot'"})
    assert listed["gaudi"]["hosts"] == ["aws-big-01", "aws-big-02", "rented-big-01", "rented-big-02"]
    assert listed["spot"]["hosts"] == ["aws-big-02", "rented-big-02"]
    assert sorted(listed["ibm"]["hosts"]) == ["rented-big-01", "rented-big-02", "rented-big-monitor"]
    assert listed["_meta"]["hostvars"]["rented-big-02"]["trainer_head"] == "rented-big-01"


def test_terraform_is_asked_in_its_workspace(source: Source) -> None:
    held = source.keep("held.json", state(outputs(), intent(NAMES, 3)))
    said = source.keep("said.json", outputs())
    stand_in = source.terraform(
        f'test "$TF_WORKSPACE" = blue || exit 1\ncase "$*" in\n"state pull") cat {source.folder / held};;\n'
        f'"output -json") cat {source.folder / said};;\nesac'
    )
    (source.folder / "aws").mkdir()
    listed = source.list(project_path="aws", workspace="blue", executable=stand_in)
    assert listed["gaudi"]["hosts"] == ["big-01", "big-02"]
    assert source.refused(project_path="aws", executable=stand_in) == (
        f"'{stand_in} state pull' failed in HERE/aws (without a word): run 'terraform init' there, and then this "
        "command by hand."
    ).replace(str(source.folder), "HERE")


def test_a_state_that_is_not_whole(source: Source) -> None:
    half = state(outputs(), intent([*NAMES, "big-03"], 4))
    assert source.refused(state_file=source.keep("terraform.tfstate", half)) == (
        "HERE/terraform.tfstate is half applied: asked for and not there is big-03, there and no longer asked for is "
        "nothing; finish it with 'terraform apply'."
    )


def test_no_state_at_all(source: Source) -> None:
    (source.folder / "aws").mkdir()
    sentence = source.refused(project_path="aws", executable=source.terraform("exit 0"))
    assert sentence == "HERE/aws has no state: make the machines first, with 'terraform apply' in HERE/aws."


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "No place is given, and one is needed: give project_path, state_file or output_file."),
        (
            {"state_file": "a", "output_file": "b"},
            "state_file and output_file is given, and one is needed: give project_path, state_file or output_file.",
        ),
        (
            {"project_path": "a", "sources": [{"project_path": "b"}]},
            "sources is given beside another place: put every cluster under sources.",
        ),
        (
            {"output_file": "missing.json"},
            "HERE/missing.json cannot be read: give a state file, or what 'terraform output -json' printed.",
        ),
        (
            {"output_file": "mine.terraform.yml"},
            "HERE/mine.terraform.yml is not JSON: give a state file, or what 'terraform output -json' printed.",
        ),
        (
            {"project_path": "missing"},
            "project_path is HERE/missing, which is no folder: give the folder where terraform was run.",
        ),
        (
            {"project_path": ".", "executable": "terraform-of-nowhere"},
            "terraform-of-nowhere was not found: install it, name it in executable, or give output_file with what "
            "'terraform output -json' printed elsewhere.",
        ),
    ],
    ids=["no place", "two places", "sources and a place", "no file", "no JSON", "no folder", "no terraform"],
)
def test_wrong_options(source: Source, options: dict[str, Any], sentence: str) -> None:
    assert source.refused(**options) == sentence


def test_terraform_that_does_not_answer(source: Source) -> None:
    slow = source.terraform("exec sleep 30")
    sentence = source.refused(project_path=".", executable=slow, timeout=1)
    assert sentence == (
        "'HERE/terraform-stand-in state pull' gave no answer within 1 seconds: look at the backend of HERE, or raise "
        "timeout."
    )


def test_the_source_of_another_plugin_is_left_to_it(source: Source) -> None:
    """Other plugins' sources end in terraform.yml too."""
    source.keep("net.terraform.yml", "plugin: amazon.aws.aws_ec2\nregions: [us-west-2]\n")
    source.keep("hosts.yml", "all: {hosts: {here: {}}}\n")
    source.keep("ansible.cfg", "[inventory]\nenable_plugins = gaudi3.scale.terraform, yaml\n")
    done = ansible(
        "ansible-inventory", "-i", str(source.folder), "--list", ANSIBLE_CONFIG=f"{source.folder}/ansible.cfg"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ungrouped"]["hosts"] == ["here"]


def test_a_playbook_does_not_start_on_half_a_cluster(source: Source) -> None:
    said = copy.deepcopy(outputs())
    del said["cluster_endpoints"]["value"]["big-02"]
    inventory = source.give(output_file=source.keep("outputs.json", said))
    playbook = source.folder / "play.yml"
    playbook.write_text("- hosts: all\n  gather_facts: false\n  tasks: []\n")
    done = ansible("ansible-playbook", "-i", inventory, str(playbook))
    assert done.returncode == 4
    assert "PLAY" not in done.stdout
    assert "is half applied: its cluster has 2 nodes, and 1 have addresses" in done.stderr
