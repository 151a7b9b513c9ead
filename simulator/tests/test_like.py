"""Nodes in the place of machines that Terraform made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator import SimulatorError, cli, cluster, network, nodes
from gaudi3_simulator.home import Cluster, Node, load_cluster
from gaudi3_simulator.inventory import inventory
from gaudi3_simulator.terraform import Machines, read_machines, subnet_of

pytestmark = pytest.mark.usefixtures("own_home")


def endpoint(role: str, address: str, cards: int = 8) -> dict[str, Any]:
    return {"role": role, "private_ip": address, "public_ip": None, "cards": cards, "ssh_user": "ubuntu"}


def outputs(**hosts: dict[str, Any]) -> str:
    return json.dumps({"cluster_endpoints": {"sensitive": False, "type": "dynamic", "value": hosts}})


HOSTS = {
    "b": endpoint("head", "10.42.16.5"),
    "a": endpoint("worker", "10.42.16.4"),
    "monitor": endpoint("monitor", "10.42.32.9", 0),
}


def test_names_addresses_and_user_are_terraforms() -> None:
    assert read_machines(outputs(**HOSTS)) == Machines(
        [Node("b", "10.42.16.5", 8), Node("a", "10.42.16.4", 8)], Node("monitor", "10.42.32.9"), "ubuntu"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "--like has no cluster_endpoints: give what 'terraform output -json' prints"),
        ("{}", "--like has no cluster_endpoints"),
        (outputs(), "--like has no node in it: apply the configuration first."),
        (outputs(a=endpoint("head", "10.0.0.5", 16)), "a has 16 cards: a simulated node has 1 to 8."),
    ],
    ids=["empty", "no outputs", "no hosts", "too many cards"],
)
def test_what_is_no_applied_cluster_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(SimulatorError) as refused:
        read_machines(text)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "monitor has the address 10.42.32.9, which is not in 10.42.16.0/24: give the network that holds"),
        ("10.42.16.5/16", "--subnet was 10.42.16.5/16: give a network, such as 10.42.0.0/16."),
        ("10.42.16.4/30", "b has the address 10.42.16.5, which the simulator needs for itself in 10.42.16.4/30"),
    ],
)
def test_every_address_must_be_in_the_network(given: str | None, sentence: str) -> None:
    with pytest.raises(SimulatorError) as refused:
        subnet_of(read_machines(outputs(**HOSTS)), given)
    assert str(refused.value).startswith(sentence)


def test_the_network_is_the_one_given_or_that_of_the_first_node() -> None:
    machines = read_machines(outputs(**HOSTS))
    assert subnet_of(machines, "10.42.0.0/16") == "10.42.0.0/16"
    assert subnet_of(Machines(machines.nodes, None, "ubuntu"), None) == "10.42.16.0/24"


def test_a_network_that_is_reached_already_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    routes = tmp_path / "route"
    routes.write_text(
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "eth0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\n"
        "eth0 00102A0A 00000000 0001 0 0 0 00F0FFFF 0 0 0\n"
    )
    monkeypatch.setattr(network, "_ROUTES", routes)
    assert network.new_subnet("10.43.0.0/16") == "10.43.0.0/16"
    with pytest.raises(
        SimulatorError, match=r"^--subnet was 10.42.0.0/16, but this machine already reaches 10.42.16.0/20"
    ):
        network.new_subnet("10.42.0.0/16")


def test_ansible_goes_in_as_the_same_user() -> None:
    made = inventory(Cluster("c", "10.42.0.0/16", [Node("a", "10.42.16.4", 8)], user="ubuntu", like=True))
    variables = made["_meta"]["hostvars"]["a"]
    assert (variables["ansible_user"], variables["ansible_become"]) == ("ubuntu", True)


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["up", "--authorized-key", "key.pub"]) == 2
    assert "--authorized-key was given without --like" in capsys.readouterr().err
    assert cli.main(["up", "--like", "missing.json"]) == 2
    assert "--like was missing.json, which cannot be read" in capsys.readouterr().err


def test_a_machine_that_terraform_replaced_is_replaced_here(tmp_path: Path) -> None:
    before = Cluster("c", "10.42.0.0/16", [Node("a", "10.42.16.4", 8), Node("b", "10.42.16.5", 8)], like=True)
    after = Cluster("c", "10.42.0.0/16", [Node("a", "10.42.16.9", 8), Node("d", "10.42.16.6", 8)], like=True)
    assert cluster._replaced(before, after) == ["a", "b"]
    assert cluster._replaced(after, after) == []
    before.folder.mkdir(parents=True)
    nodes.update_hosts(before)
    hosts = before.folder / "hosts-a"
    with hosts.open("a") as stream:
        stream.write("192.0.2.1 registry.example.com\n\n# of a role\n")
    inode = hosts.stat().st_ino
    nodes.update_hosts(after)
    assert hosts.read_text().splitlines() == [
        "127.0.0.1 localhost",
        "10.42.0.2 vault",
        "10.42.0.2 vault-storage",
        "127.0.1.1 a",
        "10.42.16.5 b",
        "192.0.2.1 registry.example.com",
        "",
        "# of a role",
        "10.42.16.6 d",
    ]
    assert hosts.stat().st_ino == inode  # the node holds this very file


def test_clusters_of_both_kinds_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "bring_up", lambda name, wanted, log: wanted(load_cluster(name)))
    machines = read_machines(outputs(**HOSTS))

    made = cluster.up_like("like", machines, print, "10.42.0.0/16", "key")
    assert (made.subnet, made.user, made.authorized_key, made.like) == ("10.42.0.0/16", "ubuntu", "key", True)
    made.save()
    with pytest.raises(
        SimulatorError, match=r"^Cluster like was made with --like: give --like again, or another --name"
    ):
        cluster.up("like", 2, 8, True, print)
    with pytest.raises(SimulatorError, match=r"^--subnet was 10.43.0.0/16, but cluster like is on 10.42.0.0/16: leave"):
        cluster.up_like("like", machines, print, "10.43.0.0/16")
    grown = read_machines(outputs(**HOSTS, c=endpoint("worker", "10.42.99.7")))
    assert cluster.up_like("like", grown, print).nodes[-1] == Node("c", "10.42.99.7", 8)  # the network is known by now
    away = read_machines(outputs(**HOSTS, c=endpoint("worker", "10.43.0.7")))
    with pytest.raises(SimulatorError, match=r"^c has the address 10.43.0.7, which is not in 10.42.0.0/16"):
        cluster.up_like("like", away, print)

    cluster.up("plain", 2, 8, True, print).save()
    with pytest.raises(
        SimulatorError, match=r"^Cluster plain was made without --like: give another --name, or take it"
    ):
        cluster.up_like("plain", machines, print, "10.42.0.0/16")
