"""A Terraform tree of the real interface whose resources need no cloud: they are Terraform's own `terraform_data`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "deploy/src"
MAIN = """
variable "name" { type = string }
variable "cluster_size" { type = number }
variable "instance_type" { type = string }
variable "wait" {
  type    = number
  default = 0
}
variable "image" {
  type    = string
  default = "one"
}
variable "ssh_public_key" { type = string }
variable "jump_host" {
  type    = string
  default = "me@gate"
}
check "way_in" {
  assert {
    condition     = var.jump_host != ""
    error_message = "Nobody reaches ${var.name}: set jump_host."
  }
}
locals { nodes = toset([for n in range(var.cluster_size / 8) : "${var.name}-gaudi-${n}"]) }
resource "terraform_data" "node" {
  for_each         = local.nodes
  input            = each.key
  triggers_replace = var.image
  provisioner "local-exec" { command = "sleep ${var.wait}" }
}
output "cluster_endpoints" {
  value = { for n, node in terraform_data.node : n => {
    role = n == sort(local.nodes)[0] ? "head" : "worker", private_ip = "127.0.0.1", id = node.id
  } }
}
output "master_ip" { value = "127.0.0.1" }
output "cluster" { value = { name = var.name, cloud = "aws", node_names = sort(local.nodes) } }
"""
CATALOGUE = {
    "types": {
        "box8": {
            "cloud": "aws",
            "source": "a list",
            "seen": "2026-01-02",
            "gaudi_generation": 3,
            "cards": 8,
            "accelerator": "Gaudi",
            "prices": [
                {
                    "market": "on-demand",
                    "usd_per_hour": 13.0,
                    "region": "here",
                    "source": "a list",
                    "seen": "2026-01-02",
                }
            ],
        }
    }
}


def outputs(*, jump_host: str = "", connection: str = "direct", **names: str) -> dict[str, Any]:
    """What Terraform puts out of machines, whose names are given by their roles."""
    endpoints = {
        name: {"role": role, "private_ip": f"10.42.16.{number}", "instance_id": f"i-{number}", "ssh_user": "ubuntu"}
        for number, (role, name) in enumerate(names.items(), 1)
    }
    nodes = [name for role, name in names.items() if role != "monitor"]
    way = {"jump_host": jump_host, "connection": connection}
    about = {"name": "demo", "cloud": "aws", "region": "us-east-1", "node_names": nodes, **way}
    return {"cluster": about, "cluster_endpoints": endpoints, "master_ip": "10.42.16.1"}


def listed(inventory: Path) -> dict[str, Any]:
    """What Ansible makes of an inventory, without the marks by which strings of a plugin are no templates."""
    ansible = Path(sys.executable).with_name("ansible-inventory")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "NO_COLOR": "1"}
    done = subprocess.run(
        [ansible, "-i", inventory, "--list"], capture_output=True, text=True, env=environment, check=True
    )
    return dict(json.loads(done.stdout, object_hook=lambda read: read.get("__ansible_unsafe", read)))


class Deploy:
    """The command, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.deployments = folder / "deployments"
        root = folder / "terraform" / "aws"
        root.mkdir(parents=True)
        (root / "main.tf").write_text(MAIN)
        catalogue = folder / "terraform" / "catalogue"
        catalogue.mkdir()
        (catalogue / "instances.json").write_text(json.dumps(CATALOGUE))

    @property
    def work(self) -> Path:
        """Where Terraform runs: the copy of the tree beside the records."""
        return self.deployments / ".terraform" / "aws"

    def command(self, *arguments: str) -> list[str]:
        """As a list."""
        return [sys.executable, "-m", "gaudi3_deploy", *arguments]

    def environment(self) -> dict[str, str]:
        """Plain output, whatever terminal runs the tests."""
        # Without what is a reader's own: an account that would be asked, a configuration with words of its own.
        kept = {k: v for k, v in os.environ.items() if k != "TF_CLI_CONFIG_FILE" and not k.startswith("AWS_")}
        kept |= {
            "TF_VAR_ssh_public_key": "ssh-ed25519 AAAA",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
        kept |= {"GAUDI3_DEPLOYMENTS": str(self.deployments), "HOME": str(self.folder / "home")}
        return {**kept, "PYTHONPATH": str(SOURCE), "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}

    def run(self, *arguments: str, code: int = 0, text: str = "") -> str:
        """Run it to the end; what it said."""
        result = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            input=text,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=180,
            check=False,
        )
        assert result.returncode == code, result.stdout
        return result.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start it and leave it alone."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def state(self, name: str = "demo") -> dict[str, str]:
        """Names and ids of the nodes in Terraform's state."""
        path = self.work / "terraform.tfstate.d" / name / "terraform.tfstate"
        if not path.exists() or not path.stat().st_size:
            return {}
        found = json.loads(path.read_text())
        return {
            instance["index_key"]: instance["attributes"]["id"]
            for resource in found["resources"]
            for instance in resource["instances"]
        }

    def record(self, name: str = "demo") -> dict[str, object]:
        """deployment.json."""
        about: dict[str, object] = json.loads((self.deployments / name / "deployment.json").read_text())
        return about


@pytest.fixture
def deploy(tmp_path: Path) -> Deploy:
    """A tree with Terraform present."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not on this machine: gaudi3-deploy is not tested")
    return Deploy(tmp_path)
