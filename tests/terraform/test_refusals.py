"""Wrong input, told when it is planned, in one sentence each: what was given, what is allowed, what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .support.tool import KEY, Project

GOOD: dict[str, Any] = {
    "cloud": "aws",
    "region": "us-west-2",
    "cluster_size": 16,
    "instance_type": "dl1.24xlarge",
    "accept_withdrawn_type": True,
    "ssh_public_key": KEY,
}
OFFER = "use terraform/ibm, as aws is not known to offer a machine with Gaudi"
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "size": (
        {"cluster_size": 12},
        "cluster_size is 12, but a dl1.24xlarge has 8 cards: give a multiple of 8, such as 16.",
    ),
    "no size": (
        {"cluster_size": 0},
        "cluster_size is 0, but counts accelerator cards: give a whole number from 1 on.",
    ),
    "unknown type": (
        {"instance_type": "dl9.metal"},
        f"instance_type is 'dl9.metal', which the catalogue does not have: {OFFER}, or describe yours in "
        "extra_instance_types.",
    ),
    "qualcomm": (
        {"instance_type": "dl2q.24xlarge"},
        "dl2q.24xlarge has Qualcomm AI 100 inference cards and no Gaudi: use gx3d-160x1792x8gaudi3 on IBM Cloud (Gaudi "
        "3).",
    ),
    "no such type": (
        {"instance_type": "dl2q.48xlarge"},
        "dl2q.48xlarge does not exist (no instance-type table has it): use gx3d-160x1792x8gaudi3 on IBM Cloud (Gaudi "
        "3).",
    ),
    "another cloud's type": (
        {"instance_type": "gx3d-160x1792x8gaudi3"},
        f"instance_type is 'gx3d-160x1792x8gaudi3', which is a type of ibm, not of aws: use terraform/ibm, or {OFFER}.",
    ),
    "no gaudi": (
        {"instance_type": "p5.48xlarge"},
        "instance_type is 'p5.48xlarge', which has no Gaudi but NVIDIA H100: set accept_other_accelerators = true if "
        f"you mean that, or {OFFER}.",
    ),
    "withdrawn": (
        {"accept_withdrawn_type": False},
        "instance_type is 'dl1.24xlarge', which aws has not offered since 2026-07-11 (seen 2026-11-25): "
        f"{OFFER}, or set accept_withdrawn_type = true for a reservation that still holds it.",
    ),
    "azure": (
        {"cloud": "azure", "region": "westus3", "instance_type": "Standard_ND96"},
        "instance_type is 'Standard_ND96', which the catalogue does not have: use terraform/ibm, as azure is not known "
        "to offer a machine with Gaudi, or describe yours in extra_instance_types.",
    ),
    "region": (
        {"region": "eu-west-1"},
        "region is 'eu-west-1', where dl1.24xlarge is not known to be offered: use us-east-1, us-west-2, or add the "
        "region by describing the type in extra_instance_types.",
    ),
    "open": (
        {"allowed_cidrs": ["198.51.100.0/24", "0.0.0.0/0"]},
        "allowed_cidrs has '0.0.0.0/0', which opens the nodes to the world: name your own networks, /8 or narrower, or "
        "leave it empty.",
    ),
    "open in two halves": (
        {"allowed_cidrs": ["0.0.0.0/1", "128.0.0.0/1"]},
        "allowed_cidrs has '0.0.0.0/1', '128.0.0.0/1', which opens the nodes to the world: name your own networks, /8 "
        "or narrower, or leave it empty.",
    ),
    "open by version 6": (
        {"allowed_cidrs": ["::/0"]},
        "allowed_cidrs has '::/0', which opens the nodes to the world: name your own networks, /8 or narrower, or "
        "leave it empty.",
    ),
    "no network": (
        {"allowed_cidrs": ["198.51.100.7"]},
        "allowed_cidrs has '198.51.100.7', which is not a network: write each as 198.51.100.0/24, and a single address "
        "as 198.51.100.7/32.",
    ),
    "no key": (
        {"ssh_public_key": ""},
        "ssh_public_key is missing: give the public key that may log in, for example with export "
        'TF_VAR_ssh_public_key="$(cat ~/.ssh/id_ed25519.pub)".',
    ),
    "a key that EC2 does not take": (
        {"ssh_key_types": ["ssh-ed25519", "ssh-rsa"], "ssh_public_key": f"ecdsa-sha2-nistp256 {KEY.split()[1]} me"},
        "ssh_public_key is of type ecdsa-sha2-nistp256, but aws takes ssh-ed25519 and ssh-rsa only: make one with "
        "ssh-keygen -t ed25519.",
    ),
    "private key": (
        {"ssh_public_key": "-----BEGIN OPENSSH PRIVATE KEY-----"},
        "ssh_public_key is a private key, which must not get into Terraform's state: give the .pub file beside it, and "
        "count this key as disclosed if the plan was stored.",
    ),
    "no key at all": (
        {"ssh_public_key": "AAAAC3NzaC1lZDI1NTE5"},
        "ssh_public_key is not one line of an OpenSSH public key (ssh-ed25519 AAAA... comment): give the content of a "
        ".pub file.",
    ),
    "name": (
        {"name": "My_Cluster"},
        "name is 'My_Cluster', but becomes a host name on every cloud: give 1 to 24 lower-case letters, digits and "
        "dashes, a letter first and no dash last.",
    ),
    "tag": (
        {"tags": {"Name": "x"}},
        "tags has Name, Cluster or ManagedBy, which the modules set themselves: leave these out.",
    ),
    "mount": (
        {"nvme_mount": "/var"},
        "nvme_mount is '/var', but must be a folder of its own under / in lower-case letters: leave the default "
        "/scratch or give, for example, /data/scratch.",
    ),
    "network": (
        {"network_cidr": "8.8.0.0/16"},
        "network_cidr is '8.8.0.0/16': give a private network (in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16) of /16 "
        "to /22, such as 10.42.0.0/16.",
    ),
    "price": (
        {"max_hourly_usd": 20},
        "max_hourly_usd is 20, but 2 x dl1.24xlarge cost 26.22 USD per hour on demand (price seen 2026-11-21): ask for "
        "fewer cards or raise it.",
    ),
    "a price of Gaudi 3": (
        {"cloud": "ibm", "region": "us-east", "instance_type": "gx3d-160x1792x8gaudi3", "node_usd_per_hour": 60,
         "max_hourly_usd": 100},
        "max_hourly_usd is 100, but 2 x gx3d-160x1792x8gaudi3 cost 120.00 USD per hour on demand (node_usd_per_hour): "
        "ask for fewer cards or raise it.",
    ),
    "time to live": (
        {"ttl": "soon"},
        "ttl is 'soon': give a number of minutes, hours or days, such as 90m, 12h or 3d, or leave it empty.",
    ),
    "idle": (
        {"idle_shutdown": "10m"},
        "idle_shutdown is '10m': give 30 minutes or more, such as 45m or 2h, or leave it empty.",
    ),
    "no price": (
        {"region": "us-east-1", "max_hourly_usd": 20},
        "max_hourly_usd is 20, but the catalogue has no price of dl1.24xlarge in us-east-1: give the price that "
        "you were quoted as node_usd_per_hour, or leave max_hourly_usd out.",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def checks(tree: Path) -> Project:
    """The module that all clouds check their input with."""
    project = Project(tree / "modules/cluster")
    project.init()
    return project


def planned(project: Project, answers: dict[str, Any]) -> list[str]:
    """What is told of these answers."""
    given = project.folder / "given.tfvars.json"
    given.write_text(json.dumps(answers))
    done = project.change("plan", f"-var-file={given}", limit=60)
    assert (done.code == 0) is (done.errors == []), done.output
    return done.errors


def test_what_is_right_is_planned(checks: Project) -> None:
    assert planned(checks, GOOD) == []


@pytest.mark.parametrize("case", CASES)
def test_wrong_input_is_told_in_one_sentence(checks: Project, case: str) -> None:
    wrong, sentence = CASES[case]
    assert planned(checks, {**GOOD, **wrong}) == [sentence]


def test_nothing_that_was_asked_for_stops_a_teardown(checks: Project) -> None:
    """A type that left the catalogue or a region, a price above the limit, a shell without the key's variable."""
    wrong = {"instance_type": "dl9.metal", "region": "eu-west-1", "max_hourly_usd": 1, "ssh_public_key": ""}
    assert len(planned(checks, {**GOOD, **wrong})) >= 2
    assert planned(checks, {**GOOD, **wrong, "teardown": True}) == []
    assert planned(checks, {**GOOD, "region": "eu-west-1", "max_hourly_usd": 1, "teardown": True}) == []


def test_null_is_the_default(checks: Project) -> None:
    assert planned(checks, {**GOOD, "name": None, "ttl": None, "tags": None, "allowed_cidrs": None}) == []


def test_a_private_key_does_not_get_far(checks: Project) -> None:
    assert not checks.state.exists()
    assert len(planned(checks, {**GOOD, "ssh_public_key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n"})) == 1
    assert not checks.state.exists()


def test_the_roots_tell_it_too(onprem: Project) -> None:
    hosts = [{"name": "a", "address": "192.0.2.1"}]
    answers: dict[str, Any] = {"cluster_size": 16, "instance_type": "onprem-gaudi3-8", "hosts": hosts}
    assert planned(onprem, answers) == [
        "hosts has 1 machines, but cluster_size = 16 needs 2 of type onprem-gaudi3-8: add machines or ask for fewer "
        "cards."
    ]
    assert planned(onprem, {**answers, "cluster_size": 12}) == [
        "cluster_size is 12, but a onprem-gaudi3-8 has 8 cards: give a multiple of 8, such as 16."
    ]
