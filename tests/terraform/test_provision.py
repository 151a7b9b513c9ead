"""provision.yml on machines that are there already, with the real terraform: no cloud is needed for that."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT
from .support.ibm_account import ibm_account
from .support.standin import GAUDI
from .support.tool import KEY, clean_environment, copied

HOSTS = [{"name": f"rack-{number}", "address": f"192.0.2.{number}"} for number in (11, 12, 13)]
WANTED = {
    "provision_name": "lab",
    "provision_cloud": "onprem",
    "provision_size": 16,
    "provision_type": "onprem-gaudi3-8",
    "provision_variables": {"hosts": HOSTS, "ssh_public_key": KEY},
}
PLAYED = "Make the machines what was asked for"


class Desk:
    """A folder with a copy of the tree, where the playbook is run."""

    def __init__(self, folder: Path, wanted: dict[str, Any] = WANTED, **environment: str) -> None:
        self.folder = folder
        self._wanted = wanted
        self._environment = environment
        self.inventory = folder / "deployments/lab/inventory"
        self.source = self.inventory / "lab.terraform.yml"
        copied(ROOT / "terraform", folder / "terraform")

    def ansible(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of Ansible here, with the checkout's configuration."""
        environment = {
            **clean_environment(),
            **self._environment,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "PWD": str(self.folder),
            "NO_COLOR": "1",
        }
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
            umask=0o022,
        )  # fmt: skip

    def play(self, *arguments: str, **more: Any) -> dict[str, dict[str, Any]]:
        """Run the playbook; results by task."""
        given = {**self._wanted, "provision_terraform_dir": str(self.folder / "terraform"), **more}
        playbook = str(ROOT / "playbooks/provision.yml")
        done = self.ansible("ansible-playbook", playbook, "-e", json.dumps(given), *arguments)
        report = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{\n") :])[0]
        tasks = [task for play in report["plays"] for task in play["tasks"]]
        return {task["task"]["name"]: task["hosts"]["localhost"] for task in tasks}

    def changed(self, *arguments: str, **more: Any) -> list[str]:
        """Tasks that changed something, or would."""
        results = self.play(*arguments, **more)
        assert not [name for name, result in results.items() if result.get("failed")], results
        return [name for name, result in results.items() if result.get("changed")]

    def refused(self, *arguments: str, **more: Any) -> str:
        """The sentence of the task that failed."""
        results = self.play(*arguments, **more)
        (failed,) = [result for result in results.values() if result.get("failed")]
        told = [each["msg"] for each in failed.get("results", [failed]) if each.get("failed")]
        return str(told[0])

    def hosts(self) -> list[str]:
        """The nodes of the inventory that was written."""
        return list(self._listed()["gaudi"]["hosts"])

    def variables(self) -> dict[str, dict[str, Any]]:
        """Their variables."""
        return dict(self._listed()["_meta"]["hostvars"])

    def _listed(self) -> dict[str, Any]:
        done = self.ansible("ansible-inventory", "-i", str(self.inventory), "--list")
        assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr
        # Strings that a plugin gives are marked as no templates, which is taken off.
        return dict(json.loads(done.stdout, object_hook=lambda read: read.get("__ansible_unsafe", read)))


@pytest.fixture(scope="module")
def lab(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Where machines are made; the two tests that use it build on each other."""
    return Desk(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def desk(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Where nothing is ever made."""
    return Desk(tmp_path_factory.mktemp("desk"))


def test_check_tells_what_the_run_then_does_and_the_second_run_does_nothing(lab: Desk) -> None:
    predicted = lab.play("--check", "--diff")
    assert not (lab.folder / "deployments").exists()
    assert not list((lab.folder / "terraform/onprem").glob("terraform.tfstate*/*/terraform.tfstate"))
    diff = predicted[PLAYED]["diff"]
    assert (diff["before"], diff["after"].splitlines()[0]) == ("", "module.cluster.terraform_data.intent")
    made = [PLAYED, "Make the inventory's folder", "Write ssh's configuration", "Write the inventory source"]
    assert [name for name, result in predicted.items() if result.get("changed")] == made
    assert lab.changed() == made
    # It holds addresses, and on IBM Cloud a key pair.
    state = lab.folder / "terraform/onprem/terraform.tfstate.d/lab/terraform.tfstate"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert lab.hosts() == ["rack-11", "rack-12"]
    (config,) = {about["ansible_ssh_common_args"].removeprefix("-F ") for about in lab.variables().values()}
    assert config == str(lab.inventory / ".lab.ssh_config")
    resolved = subprocess.run(["ssh", "-G", "-F", config, "rack-11"], capture_output=True, text=True, check=True).stdout
    assert "stricthostkeychecking accept-new\n" in resolved
    assert f"userknownhostsfile {lab.inventory}/.lab.known_hosts " in resolved
    assert lab.changed() == []
    assert lab.changed("--check", "--diff") == []


def test_growing_and_the_end(lab: Desk) -> None:
    assert lab.changed(provision_size=24) == [PLAYED]
    assert lab.hosts() == ["rack-11", "rack-12", "rack-13"]
    # Nothing that was asked for since stops it: machines that are no longer on the list, a type that is gone.
    gone = {
        "provision_size": 24, "provision_state": "absent", "provision_destroy": "lab", "provision_type": "gone-8",
        "provision_variables": {"hosts": HOSTS[:1]},
    }  # fmt: skip
    assert lab.changed("--check", **gone) == [PLAYED, "Remove the inventory source"]
    assert lab.source.exists()
    (lab.inventory / ".lab.known_hosts").touch()
    assert lab.changed(**gone) == [PLAYED, "Remove the inventory source"]
    assert list(lab.inventory.iterdir()) == []
    assert list((lab.folder / "terraform/onprem/terraform.tfstate.d").iterdir()) == []
    assert lab.changed(**gone) == []


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            {"provision_name": "My_Lab"},
            "provision_name is 'My_Lab': give 1 to 24 lower-case letters, digits and dashes, a letter first and no "
            "dash last.",
        ),
        ({"provision_cloud": "mars"}, "provision_cloud is 'mars': give one of aws, azure, gcp, ibm, onprem."),
        (
            {"provision_size": "many"},
            "provision_size is 'many': give the number of accelerator cards in all, a multiple of what one machine "
            "has.",
        ),
        ({"provision_type": ""}, "provision_type is missing: give a type of machine, one of docs/clouds/instances.md."),
        ({"provision_state": "gone"}, "provision_state is 'gone': give present or absent."),
        (
            {"provision_variables": {"name": "other"}},
            "provision_variables has name, which has a variable of its own here: give it there.",
        ),
        (
            {"provision_variables": "hosts"},
            "provision_variables is not a mapping: give variables of the root module by name.",
        ),
        (
            {"provision_state": "absent"},
            "provision_destroy is '', but everything of 'lab' would be destroyed: give provision_destroy the same name "
            "if you mean that.",
        ),
        (
            {"provision_size": 12},
            "'terraform plan' failed in HERE/terraform/onprem: cluster_size is 12, but a onprem-gaudi3-8 has 8 cards: "
            "give a multiple of 8, such as 16.",
        ),
        (
            {"provision_executable": "tofu-of-nowhere"},
            "executable is tofu-of-nowhere, which is not on this machine: install Terraform 1.9 or newer, or name it "
            "here.",
        ),
        (
            {"provision_terraform_dir": "/nowhere"},
            "project_path is /nowhere/onprem, where no Terraform configuration is: give the folder of a root module, "
            "such as terraform/aws.",
        ),
    ],
    ids=["name", "cloud", "size", "type", "state", "twice", "no mapping", "destroy", "multiple", "no terraform", "dir"],
)
def test_wrong_variables_are_told_before_anything_changes(desk: Desk, wrong: dict[str, Any], sentence: str) -> None:
    assert desk.refused(**wrong).replace(str(desk.folder), "HERE") == sentence
    assert not (desk.folder / "deployments").exists()


def test_the_state_is_never_in_an_installed_collection(desk: Desk) -> None:
    installed = desk.folder / "ansible_collections/gaudi3/scale/terraform"
    copied(ROOT / "terraform", installed)
    assert desk.refused(provision_terraform_dir=str(installed)).replace(str(desk.folder), "HERE") == (
        "project_path is HERE/ansible_collections/gaudi3/scale/terraform/onprem, in an installed collection, whose "
        "next installation would delete the state: copy HERE/ansible_collections/gaudi3/scale/terraform to a folder of "
        "yours, and give its onprem."
    )


def test_on_ibm_an_empty_bucket_goes_and_one_with_logs_stays(terraform: str, tmp_path: Path) -> None:
    wanted = {
        **WANTED, "provision_cloud": "ibm", "provision_size": 8, "provision_type": GAUDI,
        "provision_variables": {"ssh_public_key": KEY, "public_entry": "existing", "jump_host": "me@gate"},
    }  # fmt: skip
    end = {"provision_state": "absent", "provision_destroy": "lab"}
    with ibm_account(tmp_path) as account:
        desk = Desk(tmp_path / "desk", wanted, **account.environment)
        desk.changed()
        (flow,) = (row["bucket_name"] for row in account.world.rows("ibm_cos_bucket") if "-flow-" in row["bucket_name"])
        account.put(flow, "log")
        results = desk.play(**end)
        assert account.everything() == {"ibm_cos_bucket": 1, "ibm_resource_instance": 1}
        kept = ["module.cluster.ibm_cos_bucket.flow[0]", "module.cluster.ibm_resource_instance.storage"]
        assert results[PLAYED]["kept"] == kept
        assert results["Say what stays"]["msg"] == (
            f"lab is gone, but for what holds checkpoints or flow logs, and goes on costing money: {', '.join(kept)}"
        )
        account.world.drop("_object", f"{flow}/log")
        assert desk.changed(**end) == [PLAYED]
        assert account.everything() == {}
