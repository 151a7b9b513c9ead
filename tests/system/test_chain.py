"""From an account to an inventory to a finished training run, a node more, a node reclaimed, and back to nothing.

Terraform works on AWS as moto plays it. The addresses that it gives are then carried by simulated nodes, so that the
inventory plugin's answer is used as it is, and site.yml too. The tests build on each other, in the order of this file.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml

from gaudi3_simulator.home import home
from gaudi3_simulator.vendor.pip_index import LIST
from tests.ansible_run import PlaybookRun
from tests.terraform.support.account import Account, moto_account
from tests.terraform.support.tool import answer, copied, user_environment

from .conftest import JOBS, ROOT, SMALL, Site, free_network, keep_job, run, wait_for

STEPS = 400  # so many that the announcement comes before the last one
HOSTS = ["chain-01", "chain-monitor"]
#: By which a node lets another in.
LET_IN = "gaudi3.scale.firewall : Close the ports to others"
TARGETS = "gaudi3.scale.prometheus : Write the targets"


class Chain(Site):
    """A cluster on AWS, and simulated nodes in its machines' place."""

    always = ()

    def __init__(self, folder: Path, account: Account) -> None:
        super().__init__("test-chain")
        self.folder = folder
        self.account = account
        self.network = free_network("10.", range(42, 84), ".0.0/16")  # the first is the default of network_cidr
        self.before = account.everything()
        self.user = user_environment(account.environment)
        copied(ROOT / "terraform", folder / "terraform")
        self.key = self.folder / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        self.inventory = self.folder / "inventory"
        (self.inventory / "group_vars").mkdir(parents=True)
        source = {"plugin": "gaudi3.scale.terraform", "project_path": "../terraform/aws"}
        (self.inventory / "aws.terraform.yml").write_text(yaml.safe_dump(source))
        # What the simulated cluster needs of variables, and nothing else.
        shutil.copy(ROOT / "inventories/simulated/group_vars/all.yml", self.inventory / "group_vars/all.yml")
        self.settings = {
            "gaudi_secrets_dir": str(self.folder / "secrets"),
            "ansible_python_interpreter": "/usr/bin/python3",
            "simulator_requirements": str(home() / "vendor" / LIST),
        }
        # A short one: what a job learns is asserted elsewhere.
        job = {
            "trainer_job_name": "chain",
            "trainer_config": {"model": SMALL, "train": {"mode": "eager", "max_steps": 40}},
        }
        (self.inventory / "group_vars/gaudi.yml").write_text(yaml.safe_dump(job))
        with (self.inventory / "group_vars/all.yml").open("a") as stream:
            stream.write(yaml.safe_dump(self.settings))

    def terraform(self, *arguments: str, code: int = 0) -> str:
        """Run terraform in terraform/aws; what it said."""
        return answer(["terraform", f"-chdir={self.folder / 'terraform/aws'}", *arguments], self.user, code)

    def variables(self, size: int) -> list[str]:
        """Arguments that ask for ``size`` cards."""
        key = self.key.with_suffix(".pub").read_text().strip()
        given = {"cluster_size": size, "instance_type": "dl1.24xlarge", "region": "us-east-1", "name": "chain"}
        where = {"ssh_public_key": key, "network_cidr": self.network}
        return [f"-var={name}={value}" for name, value in {**given, **where}.items()]

    def carry(self) -> None:
        """Simulated nodes under the names and addresses that Terraform has now."""
        outputs = self.folder / "outputs.json"
        outputs.write_text(self.terraform("output", "-json"))
        result = run(
            "gaudi3-simulator", "up", "--name", self.name, "--like", str(outputs), "--subnet", self.network,
            "--authorized-key", str(self.key.with_suffix(".pub")),
        )  # fmt: skip
        assert result.returncode == 0, result.stderr

    def environment(self) -> dict[str, str]:
        """The user's key, the hosts' keys, and the account that the inventory plugin's terraform works on."""
        known = ROOT / ".cache/simulator/clusters" / self.name / "known_hosts"
        return {
            **self.user,
            "ANSIBLE_PRIVATE_KEY_FILE": str(self.key),
            "ANSIBLE_SSH_COMMON_ARGS": f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes",
            "ANSIBLE_INVENTORY": str(self.inventory),
        }

    def listed(self) -> dict[str, Any]:
        """What ansible-inventory makes of the plugin."""
        result = run("ansible-inventory", "--list", given=self.environment())
        assert result.returncode == 0, result.stderr
        # Strings that a plugin gives are no templates, and ansible-inventory marks them so.
        return dict(json.loads(result.stdout, object_hook=lambda read: read.get("__ansible_unsafe", read)))

    def stand_in_metadata(self, node: str) -> None:
        """Give ``node`` the metadata service that a spot instance has."""
        source = base64.b64encode((Path(__file__).parent / "stand_in_imds.py").read_bytes()).decode()
        result = self.ssh(
            node,
            f"ip address add 169.254.169.254/32 dev lo && echo {source} | base64 -d > /run/stand_in_imds.py && "
            "systemd-run --unit stand-in-imds python3 /run/stand_in_imds.py",
        )
        assert result.returncode == 0, result.stdout + result.stderr

    def addresses(self) -> dict[str, str]:
        """Where the simulated nodes are."""
        status = run("gaudi3-simulator", "status", "--json")
        rows = json.loads(status.stdout)
        return {row["node"]: row["address"] for row in rows if row["cluster"] == self.name and row["running"]}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """A node and a monitoring machine on AWS, and simulated ones in their place."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not on PATH: the chain from an account to a training run was NOT checked")
    folder = tmp_path_factory.mktemp("chain")
    with moto_account(folder, "us-east-1") as account:
        cluster = Chain(folder, account)
        cluster.down()
        try:
            cluster.terraform("init", "-input=false")
            cluster.terraform("apply", "-auto-approve", "-input=false", *cluster.variables(8))
            cluster.carry()
            yield cluster
        finally:
            cluster.down()


@pytest.fixture(scope="module")
def first(chain: Chain) -> PlaybookRun:
    return chain.play()


def test_the_inventory_names_the_machines_that_terraform_made(chain: Chain) -> None:
    listed = chain.listed()
    assert listed["gaudi"]["hosts"] == ["chain-01"]
    assert listed["gaudi_head"]["hosts"] == ["chain-01"]
    assert listed["monitoring"]["hosts"] == ["chain-monitor"]
    told = {host: listed["_meta"]["hostvars"][host]["ansible_host"] for host in HOSTS}
    assert told == chain.addresses()
    assert all(IPv4Address(address) in IPv4Network(chain.network) for address in told.values())


def test_site_yml_trains_on_them(chain: Chain, first: PlaybookRun) -> None:
    assert first.returncode == 0, first.messages() or first.output
    status = chain.status("chain-01", "chain")
    assert (status["state"], status["world_size"]) == ("finished", 2)
    assert chain.ssh("chain-01", "id -un").stdout.count("root") == 1  # by way of sudo: ssh goes in as ubuntu


def test_a_node_more_is_the_only_one_configured(chain: Chain, first: PlaybookRun) -> None:
    before = chain.addresses()
    chain.terraform("apply", "-auto-approve", "-input=false", *chain.variables(16))
    chain.carry()
    after = chain.addresses()
    assert sorted(set(after) - set(before)) == ["chain-02"]
    assert {host: after[host] for host in before} == before
    listed = chain.listed()
    assert (listed["gaudi"]["hosts"], listed["gaudi_head"]["hosts"]) == (["chain-01", "chain-02"], ["chain-01"])
    grown = chain.play()
    assert grown.returncode == 0, grown.messages() or grown.output
    assert {(host, name) for host, name in grown.changed() if host != "chain-02"} == {
        ("chain-monitor", TARGETS),
        ("chain-01", LET_IN),
    }


@JOBS.sampled("a job whose node is reclaimed")
def test_a_reclaimed_node_is_replaced_and_the_job_goes_on(chain: Chain, first: PlaybookRun) -> None:
    nodes = ["chain-01", "chain-02"]
    for node in nodes:
        chain.stand_in_metadata(node)
    settings = {
        "trainer_job_name": "reclaimed",
        "trainer_processes_per_node": 1,
        "trainer_config": {
            "model": SMALL,
            "train": {"mode": "eager", "max_steps": STEPS, "log_every": 50, "threads": 1},
            "checkpoint": {"every": 20},
            "data": {"validation_samples": 16},
        },
        **chain.pace(0.1),
    }
    job = ("-e", json.dumps(settings))
    started = chain.play("--tags", "train", "-e", "trainer_state=started", *job)
    assert started.returncode == 0, started.messages()
    wait_for(lambda: (chain.status("chain-02", "reclaimed").get("checkpoint_step") or 0) >= 20, "a checkpoint")
    in_two_minutes = (datetime.now(tz=UTC) + timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    notice = json.dumps({"action": "terminate", "time": in_two_minutes})
    assert chain.ssh("chain-02", f"echo '{notice}' > /run/instance-action").returncode == 0
    wait_for(lambda: chain.status("chain-01", "reclaimed").get("state") == "interrupted", "the interruption")
    left = chain.status("chain-01", "reclaimed")
    assert f"AWS will terminate this spot instance at {in_two_minutes}" in json.dumps(left)
    assert left["checkpoint_step"] == left["step"] < STEPS

    before = chain.addresses()
    lost = chain.account.machines()["chain-02"]["InstanceId"]
    chain.account.client("ec2").terminate_instances(InstanceIds=[lost])
    chain.terraform("apply", "-auto-approve", "-input=false", *chain.variables(16))
    assert chain.account.machines()["chain-02"]["InstanceId"] != lost
    chain.carry()
    after = chain.addresses()
    assert {host for host in after if after[host] != before[host]} == {"chain-02"}
    again = chain.play(*job)
    assert again.returncode == 0, again.messages() or again.output
    for node in nodes:
        status = chain.status(node, "reclaimed")
        assert (status["state"], status["step"], status["world_size"]) == ("finished", STEPS, 2)
        assert status["resumed_from_step"] == left["step"]
    configured = {name for host, name in again.changed() if host == "chain-02"}
    assert {name for host, name in again.changed() if host == "chain-monitor"} == {TARGETS}
    elsewhere = {name for host, name in again.changed() if host == "chain-01"}
    assert len(configured) > 10
    # The other is left alone but for the job, which is started again, and the new machine's address.
    assert LET_IN in elsewhere
    elsewhere -= {LET_IN}
    assert elsewhere == {"gaudi3.scale.trainer : Bring the job to its state"}
    keep_job("a job whose node is reclaimed", "a spot node leaves, Terraform makes another, site.yml runs again", STEPS)


def test_in_the_end_nothing_is_left(chain: Chain, first: PlaybookRun) -> None:
    chain.terraform("destroy", "-auto-approve", "-input=false", *chain.variables(16))
    assert chain.terraform("state", "list") == ""
    assert chain.account.everything() == chain.before
    refused = run("ansible-inventory", "--list", given=chain.environment())
    assert refused.returncode != 0
    assert "holds no machines: make them first, with 'terraform apply'" in refused.stderr
