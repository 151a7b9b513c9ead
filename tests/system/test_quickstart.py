"""The documented quick starts, the whole way: from the command to a finished training run on nodes behind a jump host.

Clouds are stand-ins, which make no machines: as soon as Terraform has given addresses, simulated nodes carry them. A
public address leads to the monitoring machine, which is the jump host. `make proof-quickstart` runs all of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from gaudi3_simulator.home import home
from gaudi3_simulator.vendor.pip_index import LIST
from tests.suite.proof import Proof
from tests.terraform.support.account import Account, moto_account
from tests.terraform.support.deploy_workspace import COMMANDS
from tests.terraform.support.documents import blocks, commands
from tests.terraform.support.ibm_account import IbmAccount, ibm_account
from tests.terraform.support.tool import copied, user_environment

from .conftest import ROOT, Site, free_network, run

# For documentation (RFC 5737): nobody has one of its addresses but the machine that a test gives it to.
PUBLIC = "198.51.100"
HEADINGS = {"hosts": "On machines that you have", "ibm": "On IBM Cloud", "aws": "On AWS"}
PROOF = Proof(
    "quickstart",
    {"targets": list(HEADINGS)},
    sample=["none"],
)
TEXT = """
Each row is the quick start of [terraform.md](../docs/clouds/terraform.md#quick-start) as it stands there, called on a
machine that reaches the nodes through a jump host alone. Clouds are played by stand-ins (moto, the stand-in for IBM's
provider), which make no machines; simulated nodes carry the addresses that Terraform gave, and come up while the
command waits for them. The seconds are those of stand-ins on this machine, which other work may share, and say
nothing about a cloud or a Gaudi.

`resources` is how many Terraform made; the job has twenty steps.
"""


class Way:
    """A person's machine: an agent with a key, a folder to work in, and the command."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.key = folder / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        copied(ROOT / "terraform", folder / "terraform")
        (folder / "job.yml").write_text(blocks("terraform.md", "Quick start")[0])
        socket = folder / "agent"
        self.agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
        tools = folder / "tools"
        tools.mkdir()
        # What the person has met before, as a jump host is; ssh looks for it in the home of the account alone.
        (folder / "met").touch()
        ssh = f'#!/bin/sh\nexec {shutil.which("ssh")} -o GlobalKnownHostsFile={folder / "met"} "$@"\n'
        (tools / "ssh").write_text(ssh)
        (tools / "ssh").chmod(0o755)
        self.environment = {
            **environment,
            "GAUDI3_DEPLOYMENTS": str(folder / "deployments"),
            "SSH_AUTH_SOCK": str(socket),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
            "PATH": f"{tools}:{environment.get('PATH', os.environ['PATH'])}",
        }

    def add(self, key: Path) -> None:
        """Give the agent a key."""
        deadline = time.monotonic() + 10
        while not (self.folder / "agent").exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        added = subprocess.run(["ssh-add", "-q", key], env={**os.environ, **self.environment}, check=False)
        assert added.returncode == 0

    def settings(self, name: str) -> None:
        """What a simulated cluster needs of variables, where one's own belong: beside the inventory."""
        place = self.folder / "deployments" / name / "inventory/group_vars"
        place.mkdir(parents=True)
        own = {
            "gaudi_secrets_dir": str(self.folder / "secrets"),
            "ansible_python_interpreter": "/usr/bin/python3",
            "simulator_requirements": str(home() / "vendor" / LIST),
        }
        simulated = (ROOT / "inventories/simulated/group_vars/all.yml").read_text()
        (place / "all.yml").write_text(simulated + yaml.safe_dump(own))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command."""
        return subprocess.Popen(
            ["gaudi3-deploy", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=(self.folder / "said").open("w"),
            stderr=subprocess.STDOUT,
            text=True,
        )


@contextmanager
def way(folder: Path, environment: dict[str, str]) -> Iterator[Way]:
    """A person's machine; its agent ends with it."""
    made = Way(folder, environment)
    try:
        made.add(made.key)
        yield made
    finally:
        made.agent.terminate()
        made.agent.wait()


def step_of(site: Site, host: str) -> int:
    """How far the job is."""
    return int(site.status(host, "first").get("step") or 0)


def follow(made: Way, site: Site, process: subprocess.Popen[str], began: float, host: str) -> dict[str, Any]:
    """Wait for the command's end; seconds to the first step and in all."""
    first = None
    while process.poll() is None:
        assert time.monotonic() - began < 3000, (made.folder / "said").read_text()[-3000:]
        time.sleep(2)
        try:
            if first is None and step_of(site, host) >= 1:
                first = time.monotonic() - began
        except (AssertionError, StopIteration):
            continue
    said = (made.folder / "said").read_text()
    assert process.returncode == 0, said[-4000:]
    status = json.loads((made.folder / "results/first/status.json").read_text())
    assert (status["state"], status["step"]) == ("finished", 20)
    return {"seconds to the first step": round(first or 0), "seconds in all": round(time.monotonic() - began)}


def given(target: str) -> list[str]:
    """The documented call, with the type that the stand-in has, and a yes, as nobody is there to be asked."""
    (command,) = commands("terraform.md", HEADINGS[target])
    return [*(each.replace("TYPE", COMMANDS["aws"].kind) for each in command), "--yes"]


def on_hosts(folder: Path) -> dict[str, Any]:
    """Two nodes that are there; the first is the jump host of the other."""
    site = Site("quick-hosts")
    site.down()
    try:
        site.up(2, "--subnet", free_network("10.89.", range(120, 100, -1), ".0/24"))
        cluster_folder = ROOT / ".cache/simulator/clusters/quick-hosts"
        status = json.loads(run("gaudi3-simulator", "status", "--json").stdout)
        nodes = {row["node"]: row["address"] for row in status if row["cluster"] == "quick-hosts"}
        addresses = {name: nodes[name] for name in ("gaudi-1", "gaudi-2")}
        with way(folder, user_environment({})) as made:
            made.add(next(path for path in cluster_folder.iterdir() if path.name.startswith("id_") and not path.suffix))
            shutil.copy(cluster_folder / "known_hosts", folder / "met")
            hosts = [{"name": name, "address": address} for name, address in addresses.items()]
            jump = f"root@{addresses['gaudi-1']}"
            lab = {"hosts": hosts, "jump_host": jump, "ssh_user": "root"}
            (folder / "lab.yml").write_text(yaml.safe_dump(lab))
            made.settings("lab")
            began = time.monotonic()
            row = follow(made, site, made.start(*given("hosts")), began, "gaudi-1")
        return {"resources": 0, **row}
    finally:
        site.down()


@contextmanager
def routes() -> Iterator[Callable[..., None]]:
    """A way to set where an address leads; without more than the address, nowhere. All of it ends at the end."""
    known: set[str] = set()

    def lead(address: str, *how: str) -> None:
        kind = ["unreachable"] if not how else []
        if address in known:
            subprocess.run(["ip", "route", "del", address], check=True)
        subprocess.run(["ip", "route", "add", *kind, address, *how], check=True)
        known.add(address)

    try:
        yield lead
    finally:
        for address in known:
            subprocess.run(["ip", "route", "del", address], check=False)


def on_cloud(target: str, folder: Path) -> dict[str, Any]:
    """Machines that a stand-in has made, as far as Terraform knows; simulated nodes answer for them."""
    account_of: AbstractContextManager[Account | IbmAccount]
    account_of = ibm_account(folder) if target == "ibm" else moto_account(folder, "us-east-1", public_network=PUBLIC)
    site = Site(f"quick-{target}")
    site.down()
    network = free_network("10.", range(42, 84), ".0.0/16")
    with account_of as account, way(folder, user_environment(account.environment)) as made, routes() as lead:
        before = account.everything()
        made.settings("trial")
        key = made.key.with_suffix(".pub")
        own = ("--ssh-key", str(key), "--var", f"network_cidr={network}")
        began = time.monotonic()
        process = made.start(*given(target), *own)
        try:
            outputs = folder / "deployments/trial/outputs.json"
            while not outputs.exists():
                assert process.poll() is None, (folder / "said").read_text()[-4000:]
                time.sleep(0.2)
            there = time.monotonic() - began
            (resources,) = set(re.findall(r"^(\d+)/\1 resources$", (folder / "said").read_text(), re.MULTILINE))
            read = json.loads(outputs.read_text())
            public = [each for each in read["cluster_endpoints"].values() if each.get("public_ip")]
            for each in public:
                lead(each["public_ip"])  # until somebody has it
            like = folder / "like.json"
            like.write_text(json.dumps({name: {"value": value} for name, value in read.items()}))
            result = run(
                "gaudi3-simulator", "up", "--name", site.name, "--like", str(like), "--subnet", network,
                "--authorized-key", str(key),
            )  # fmt: skip
            assert result.returncode == 0, result.stderr
            for each in public:
                lead(each["public_ip"], "via", each["private_ip"])
                assert site.ssh("trial-monitor", f"ip address add {each['public_ip']}/32 dev lo").returncode == 0
            row = follow(made, site, process, began, "trial-01")
            assert account.everything() == before
            return {"resources": int(resources), "seconds to the inventory": round(there), **row}
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            site.down()


@pytest.mark.proof
@pytest.mark.parametrize("target", list(HEADINGS))
def test_from_the_documented_command_to_a_finished_job(target: str, tmp_path: Path) -> None:
    PROOF.skip_if_held(target)
    row = on_hosts(tmp_path) if target == "hosts" else on_cloud(target, tmp_path)
    print(row)
    if PROOF.is_running:
        PROOF.note(target, row)
        columns = ["resources", "seconds to the inventory", "seconds to the first step", "seconds in all"]
        PROOF.write_table("The documented quick starts, to a finished job", TEXT, columns)
