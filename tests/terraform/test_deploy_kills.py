"""`gaudi3-deploy` cut off at seeded instants of up, run, replace and down, on stand-ins for AWS and IBM: it converges.

An instant is a count of what was done at the service, not a time, so that a busy machine changes nothing. The life of
a deployment in test_deploy.py is cut off at one of each command; `make proof-provisioning` tries all.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..suite.proof import SEED, Proof
from .support.account import Account, moto_account
from .support.deploy_workspace import DeployWorkspace, Instant, cpu_seconds
from .support.ibm_account import IbmAccount, ibm_account

NAMES = ["cluster-01", "cluster-02", "cluster-monitor"]
#: What is there when two nodes and a monitor are; without what an interrupted run may have left once too often.
WHOLE = {
    "instances": 3, "vpcs": 1, "subnets": 2, "nat gateways": 1, "addresses": 1, "endpoints": 1, "interfaces": 4,
    "volumes": 5, "templates": 1, "placement groups": 1, "groups": 0, "buckets": 1, "keys": 1, "roles": 3,
    "profiles": 2, "logs": 1, "budgets": 0,
}  # fmt: skip
#: The same on IBM, where nothing may be left once too often.
WHOLE_ON_IBM = {
    "ibm_is_instance": 3, "ibm_is_vpc": 1, "ibm_is_vpc_address_prefix": 1, "ibm_is_subnet": 5,
    "ibm_is_public_gateway": 1, "ibm_is_security_group": 2, "ibm_is_security_group_rule": 8, "ibm_is_ssh_key": 1,
    "ibm_is_flow_log": 1, "ibm_resource_instance": 1, "ibm_cos_bucket": 2, "ibm_resource_key": 1,
    "ibm_iam_trusted_profile": 1, "ibm_iam_trusted_profile_policy": 1, "ibm_iam_service_id": 1,
    "ibm_iam_service_policy": 1, "ibm_iam_custom_role": 1, "ibm_iam_authorization_policy": 1,
}  # fmt: skip
#: Clouds by name: another is an entry more, whose account has the same methods.
CLOUDS: dict[str, Callable[[Path], AbstractContextManager[Account | IbmAccount]]] = {
    "aws": lambda folder: moto_account(folder, "us-east-1", folder / "gate"),
    "ibm": lambda folder: ibm_account(folder, folder / "gate"),
}
HOW = ("power", "ctrl-c", "alone")


@dataclass(frozen=True)
class Case:
    """A command, and the instant at which it is cut off."""

    cloud: str
    command: str
    instant: Instant

    def __str__(self) -> str:
        return (
            f"{self.command}: {self.instant}" if self.cloud == "aws" else f"{self.cloud} {self.command}: {self.instant}"
        )


def drawn(chance: random.Random, changes: int, count: int) -> list[Instant]:
    """One out of each part of a command that changes something so many times."""
    width = changes / count
    return [
        Instant("*", chance.randint(int(part * width) + 1, int((part + 1) * width)), chance.choice(HOW))
        for part in range(count)
    ]


def on_ibm(seed: int) -> dict[str, list[Instant]]:
    """Twelve, by command. Always where storage, the network, a machine and a key pair are made, or one ends."""
    chance = random.Random(f"ibm-{seed}")
    always = [
        Instant("create:ibm_resource_instance", 1, "power"),
        Instant("create:ibm_is_vpc", 1, "power"),
        Instant("create:ibm_is_instance", 2, "power"),
    ]
    return {
        "up": [*always, *drawn(chance, 30, 2)],
        "run": [Instant("create:ibm_cos_bucket", 1, "power"), *drawn(chance, 34, 1)],
        "replace": [
            Instant("create:ibm_is_instance", 1, "power"),
            Instant("delete:ibm_is_instance", 1, "power"),
            Instant("delete:ibm_is_instance", 1, "alone"),
        ],
        "down": [Instant("delete:ibm_is_instance", 2, "power"), *drawn(chance, 30, 1)],
    }


def on_aws(seed: int) -> dict[str, list[Instant]]:
    """Twenty, by command. Always where a key, a machine and the one thing with a fixed name are made, or one ends."""
    chance = random.Random(seed)
    always = [
        Instant("CreateKey", 1, "power"),
        Instant("EnableKeyRotation", 1, "ctrl-c"),
        Instant("CreatePlacementGroup", 1, "power"),
        Instant("RunInstances", 3, "ctrl-c"),
    ]
    return {
        "up": [*always, *drawn(chance, 55, 4)],
        "run": [Instant("RunInstances", 2, "power"), Instant("TerminateInstances", 1, "power"), *drawn(chance, 50, 2)],
        "replace": [
            Instant("RunInstances", 1, "power"),
            Instant("RunInstances", 1, "ctrl-c"),
            Instant("TerminateInstances", 1, "power"),
            Instant("TerminateInstances", 1, "alone"),
        ],
        "down": [Instant("TerminateInstances", 2, "power"), *drawn(chance, 30, 3)],
    }


INSTANTS = {"aws": on_aws, "ibm": on_ibm}
CASES = {
    str(case): case
    for cloud in CLOUDS
    for command, found in INSTANTS[cloud](SEED).items()
    for case in (Case(cloud, command, each) for each in found)
}
PROOF = Proof(
    "provisioning",
    {"cases": list(CASES)},
    sample=["none"],
)
TEXT = """
AWS is played by moto, IBM Cloud by a stand-in for its provider and a simulated cloud, nodes and playbooks by stand-ins
that do nothing. `gaudi3-deploy` is cut off at an instant that is counted at the service, then run again with the same
arguments and without `--allow-replace`. Each time it converged. After `up`: three machines, one key or one storage
instance that was ever made, the next plan empty. After `replace`: as many machines, of which one is another than
before. After `run` and `down`: nothing. Of the rest there was one of each; on AWS a key pair or a security group may be
left without use until `gaudi3-deploy down` deletes it.

`power`: everything is killed at once, with a request done and not yet answered. `ctrl-c`: as a terminal does it.
`alone`: `gaudi3-deploy` is killed and Terraform goes on. `change 9` is the ninth call that changed something.
"""


@pytest.fixture
def desk(terraform: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DeployWorkspace[Any]]:
    """An empty account with a gate."""
    case: Case = request.node.callspec.params["case"]
    with CLOUDS[case.cloud](tmp_path) as account:
        yield DeployWorkspace(tmp_path, account)


def whole(desk: DeployWorkspace[Any], gone: int = 0) -> None:
    """Two nodes and a monitor, once, and one key; the interface of a machine that is gone is kept by moto alone."""
    assert sorted(desk.endpoints()) == sorted(desk.account.machines()) == NAMES
    if isinstance(desk.account, IbmAccount):
        assert desk.account.everything() == WHOLE_ON_IBM
        return
    assert [each["KeyState"] for each in desk.account.keys_made()] == ["Enabled"], "a second key was made"
    found = desk.account.everything()
    # A key pair's public half cannot be read back: an orphan of it cannot be taken over, and costs nothing.
    assert found.pop("key pairs") in (1, 2)
    # A group that was cut off before it was closed is made anew; nodes and the monitor have one each.
    assert found.pop("security groups") in (1, 2, 3, 4)
    assert found == {**WHOLE, "interfaces": WHOLE["interfaces"] + gone}


def machine(desk: DeployWorkspace[Any], name: str) -> str:
    """Its id."""
    return str(desk.account.machines()[name]["InstanceId"])


def converge(desk: DeployWorkspace[Any], case: Case) -> Mapping[str, Any]:
    """Cut a command off, run it again, and look at what there is; a row of the table."""
    before: dict[str, int] = desk.account.everything()
    given = desk.commands.whole(case.command)
    began, first = time.monotonic(), 0.0
    if case.command in ("replace", "down"):
        _said, first = cpu_seconds(lambda: desk.run(*desk.commands.whole("up")))
    old = machine(desk, "cluster-02") if case.command == "replace" else ""
    cut, second = cpu_seconds(lambda: desk.cut_off(case.instant, *given))
    assert cut, f"`{case.command}` was through before {case.instant}"
    tainted = sorted(desk.tainted())
    _said, third = cpu_seconds(lambda: desk.run(*given))
    if case.command in ("up", "replace"):
        whole(desk, gone=int(case.command == "replace"))
        assert "nothing to change" in desk.run("plan", "cluster")
    if case.command == "replace":
        assert machine(desk, "cluster-02") != old
    if case.command in ("run", "down"):
        assert desk.account.everything() == before
    periods = json.loads((desk.folder / "deployments/cluster/deployment.json").read_text())["periods"]
    assert (periods[-1]["ended"] is None) == (case.command in ("up", "replace")), "what is counted is not what runs"
    return {
        "marked as half made": ", ".join(tainted) or "nothing",
        "CPU seconds": round(first + second + third),
        "seconds": round(time.monotonic() - began),
    }


@pytest.mark.proof
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_cut_off_and_run_again_it_converges(desk: DeployWorkspace[Any], case: Case) -> None:
    print(f"seed {SEED}: {case}")
    PROOF.skip_if_held(str(case))
    row = dict(converge(desk, case))
    if PROOF.is_running:
        PROOF.note(str(case), row)
        PROOF.write_table("`gaudi3-deploy`, cut off and run again", TEXT, list(row))
