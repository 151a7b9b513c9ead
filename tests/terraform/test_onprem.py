"""The root for machines that are there already: applied for real, as it needs no provider."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.cluster import cluster_from_outputs
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.inventory import Inventory, build_inventory

from .conftest import TREE
from .support.tool import Project

HOSTS = [{"name": f"rack-{number}", "address": f"192.0.2.{number}", "zone": "hall-a"} for number in (11, 12, 13)]


@pytest.fixture(scope="module")
def applied(onprem: Project) -> dict[str, Any]:
    """The outputs after an apply with 16 cards."""
    given = onprem.folder / "hosts.auto.tfvars.json"
    given.write_text(
        json.dumps(
            {
                "instance_type": "onprem-gaudi3-8",
                "hosts": HOSTS,
                "monitor_host": {"name": "watch", "address": "192.0.2.5"},
                "ssh_user": "admin",
                "jump_host": "me@gate.example.com",
            }
        )
    )
    done = onprem.change("apply", "-var=cluster_size=16")
    assert done.code == 0, done.output
    return onprem.outputs()


def inventory(outputs: dict[str, Any]) -> Inventory:
    """What the plugin makes of outputs."""
    return build_inventory([cluster_from_outputs(outputs, "the outputs", "terraform apply")])


def test_the_inventory_is_what_site_yml_works_on(applied: dict[str, Any]) -> None:
    built = inventory(applied)
    assert built.groups == {
        "gaudi": ["rack-11", "rack-12"],
        "gaudi_head": ["rack-11"],
        "monitoring": ["watch"],
        "onprem": ["rack-11", "rack-12", "watch"],
    }
    assert built.hosts["rack-12"] == {
        "ansible_user": "admin",
        "ansible_become": True,
        "ansible_ssh_common_args": "-o ProxyJump=me@gate.example.com",
        "ansible_host": "192.0.2.12",
        "gaudi_cluster_address": "192.0.2.12",
        "gaudi_instance_type": "onprem-gaudi3-8",
        "gaudi_zone": "hall-a",
    }


def test_the_outputs_are_complete(applied: dict[str, Any]) -> None:
    assert applied["master_ip"] == "192.0.2.11"
    assert applied["cluster_endpoints"]["rack-11"] == {
        "role": "head",
        "private_ip": "192.0.2.11",
        "public_ip": None,
        "instance_id": None,
        "ssh_port": None,
        "jump_host": None,
        "host_key": None,
        "bmc": None,
        "instance_type": "onprem-gaudi3-8",
        "cards": 8,
        "zone": "hall-a",
        "market": None,
        "ssh_user": "admin",
        "connect_to": "192.0.2.11",
    }
    assert applied["cluster"]["cluster_size"] == 16
    assert applied["cluster"]["node_names"] == ["rack-11", "rack-12"]


def test_a_second_plan_is_empty_and_a_third_machine_is_added(onprem: Project, applied: dict[str, Any]) -> None:
    assert onprem.change("plan", "-detailed-exitcode", "-var=cluster_size=16").code == 0
    done = onprem.change("apply", "-var=cluster_size=24")
    assert "0 added, 1 changed, 0 destroyed" in done.output
    assert onprem.outputs()["cluster"]["node_names"] == ["rack-11", "rack-12", "rack-13"]


#: The same three machines as a table and as YAML; the last one watches the others.
TABLE = """name,address,cluster_address,port,user,jump_host,host_key,bmc,role
cell-1,203.0.113.7,10.0.0.1,2201,root,ops@gate.example.com:2200,ssh-ed25519 AAAAC3NzaC1lZDI1NTE5,10.9.0.1,
cell-2,203.0.113.7,10.0.0.2,2202,,,,,
watch,203.0.113.8,,,,,,,monitor
"""
LIST = """hosts:
  - name: cell-1
    address: 203.0.113.7
    cluster_address: 10.0.0.1
    port: 2201
    user: root
    jump_host: ops@gate.example.com:2200
    host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5
    bmc: 10.9.0.1
  - {name: cell-2, address: 203.0.113.7, cluster_address: 10.0.0.2, port: 2202}
  - {name: watch, address: 203.0.113.8, role: monitor}
"""


@pytest.mark.parametrize(("name", "text"), [("rack.csv", TABLE), ("rack.yml", LIST)])
def test_a_file_of_hosts(onprem: Project, name: str, text: str) -> None:
    (onprem.folder / name).write_text(text)
    project = Project(onprem.folder, name="terraform")
    (onprem.folder / "hosts.auto.tfvars.json").unlink(missing_ok=True)
    asked = ("-var=cluster_size=16", "-var=instance_type=onprem-gaudi3-8", f"-var=hosts_file={onprem.folder / name}")
    done = project.change("apply", *asked)
    assert done.code == 0, done.output
    assert project.outputs()["master_ip"] == "10.0.0.1"
    keys = {host: said["host_key"] for host, said in project.outputs()["cluster_endpoints"].items()}
    assert keys == {"cell-1": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "cell-2": None, "watch": None}
    built = inventory(project.outputs())
    assert built.groups["monitoring"] == ["watch"]
    own = {"ansible_user": "ubuntu", "ansible_become": True}
    assert built.hosts == {
        "cell-1": {
            "ansible_host": "203.0.113.7", "ansible_port": 2201, "ansible_user": "root", "ansible_become": False,
            "ansible_ssh_common_args": "-o ProxyJump=ops@gate.example.com:2200 -o StrictHostKeyChecking=yes "
            "-o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null "
            "-o 'KnownHostsCommand=/bin/echo %H ssh-ed25519 AAAAC3NzaC1lZDI1NTE5'",
            "gaudi_cluster_address": "10.0.0.1", "gaudi_instance_type": "onprem-gaudi3-8",
            "gaudi_bmc_address": "10.9.0.1",
        },
        "cell-2": {
            "ansible_host": "203.0.113.7", "ansible_port": 2202, "gaudi_cluster_address": "10.0.0.2",
            "gaudi_instance_type": "onprem-gaudi3-8", **own,
        },
        "watch": {"ansible_host": "203.0.113.8", "gaudi_cluster_address": "203.0.113.8", **own},
    }  # fmt: skip
    # And ssh understands it.
    arguments = shlex.split(built.hosts["cell-1"]["ansible_ssh_common_args"])
    shown = subprocess.run(["ssh", "-G", *arguments, "203.0.113.7"], capture_output=True, text=True, check=True)
    said = dict(line.split(" ", 1) for line in shown.stdout.splitlines() if " " in line)
    assert said["knownhostscommand"] == "/bin/echo %H ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"
    assert (said["stricthostkeychecking"], said["proxyjump"]) == ("true", "ops@gate.example.com:2200")


def test_the_example_from_outside_the_tree(tree: Path, tmp_path: Path) -> None:
    """As somebody has it who takes the module from where it is published: the package holds all that it needs."""
    for file in (TREE / "examples/hosts").iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace("../../modules/", f"{tree}//modules/"))
    project = Project(tmp_path)
    project.init()
    done = project.change("apply")
    assert done.code == 0, done.output
    hosts = inventory(project.outputs()).hosts
    assert {name: host.get("ansible_port") for name, host in hosts.items()} == {
        "rack-01": 2201, "rack-02": 2202, "watch": None
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "name,address,port\ncell-1,203.0.113.7,99999\n",
            "hosts has port '99999': give a name in lower-case letters, digits and dashes, an address, a port from 1 "
            "to 65535, a user of Linux, jump_host as user@host or user@host:port, and host_key as a type and a key, "
            "such as ssh-ed25519 AAAA...",
        ),
        (
            "name,ip\ncell-1,203.0.113.7\n",
            "hosts_file is 'FILE', which has no machines, or one without name or address: write each as name, address "
            "and, where needed, cluster_address, port, user, jump_host, host_key, bmc, zone, role.",
        ),
        (
            "name,address,rack\ncell-1,203.0.113.7,4\n",
            "hosts_file has rack, which is not known: the names are name, address, cluster_address, port, user, "
            "jump_host, host_key, bmc, zone, role.",
        ),
        (None, "hosts_file is 'FILE', which cannot be read: give the absolute path of a YAML or CSV file."),
    ],
    ids=["port", "no address", "unknown", "no file"],
)
def test_a_file_of_hosts_that_is_wrong(onprem: Project, text: str | None, sentence: str) -> None:
    file = onprem.folder / "wrong.csv"
    file.unlink(missing_ok=True)
    if text is not None:
        file.write_text(text)
    (onprem.folder / "hosts.auto.tfvars.json").unlink(missing_ok=True)
    asked = ("-var=cluster_size=8", "-var=instance_type=onprem-gaudi3-8", f"-var=hosts_file={file}")
    done = Project(onprem.folder, name="wrong").run("init", "-no-color")
    done = Project(onprem.folder, name="wrong").change("plan", *asked)
    assert sentence.replace("FILE", str(file)) in done.errors, done.output
