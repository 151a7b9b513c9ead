"""How collectives go from host to host, as the host's facts and the variables of role fabric say."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import fabric

PORTS = {"kind": "gaudi", "ports": [{"name": "acc0"}], "generation": "gaudi3"}
USUAL: dict[str, Any] = {
    "fabric_kind": "auto",
    "fabric_ofi_wrapper_archive": "",
    "fabric_address": "10.0.0.1",
    "fabric_environment": {},
    "groups": {"gaudi": ["gaudi-1", "gaudi-2"]},
    "ansible_facts": {"gaudi_fabric": PORTS},
}


def values(**given: Any) -> Any:
    return {**USUAL, **given}.get


def host(kind: Any, **more: Any) -> dict[str, Any]:
    return {"ansible_facts": {"gaudi_fabric": {**PORTS, "kind": kind, **more}}}


@pytest.mark.parametrize(
    ("given", "found", "kind"),
    [
        ({}, "gaudi", "gaudi"),
        (host("host_tcp"), "host_tcp", "host_tcp"),
        ({**host("host_tcp"), "groups": {"gaudi": ["gaudi-1"]}}, "host_tcp", "none"),
        ({**host("host_tcp"), "groups": {}, "ansible_play_hosts_all": ["a", "b"]}, "host_tcp", "host_tcp"),
        ({"fabric_kind": "none"}, "none", "none"),
        ({"ansible_facts": {}}, "", ""),
        (host(["gaudi"]), "", ""),
        (host("gaudi\n"), "", ""),
    ],
)
def test_the_host_says_it_or_the_user(given: dict[str, Any], found: str, kind: str) -> None:
    assert (fabric.found(values(**given)), fabric.kind(values(**given))) == (found, kind)


@pytest.mark.parametrize(
    ("given", "builds"),
    [
        ({}, False),
        (host("host_tcp"), True),
        ({**host("host_tcp"), "fabric_ofi_wrapper_archive": "/srv/wrapper.tgz"}, False),
        ({**host("host_tcp"), "groups": {"gaudi": ["gaudi-1"]}}, False),
        # A cloud whose profile has no cluster network: known before the driver shows the ports.
        ({**host("gaudi", ports=[]), "gaudi_cloud": "ibm"}, True),
        ({**host("gaudi", ports=[]), "gaudi_cloud": "ibm", "fabric_kind": "gaudi"}, False),
        ({**host("gaudi", ports=[]), "gaudi_cloud": "ibm", "groups": {"gaudi": ["gaudi-1"]}}, False),
        (host("gaudi", ports=[]), False),
        ({**host("gaudi", ports=None), "gaudi_cloud": "ibm"}, False),
    ],
)
def test_what_tcp_needs_is_built(given: dict[str, Any], builds: bool) -> None:
    assert fabric.builds(values(**given)) is builds


def interfaces(**more: Any) -> dict[str, Any]:
    given = host("host_tcp")["ansible_facts"]
    cards = {"ens1-2": {"device": "ens1-2", "ipv4": {"address": "10.0.0.1"}}, "lo": {"device": "lo"}}
    named = {name.replace("-", "_"): each for name, each in cards.items()}
    return {"ansible_facts": {**given, "interfaces": [*reversed(cards)], **named, **more}}


def test_the_interface_with_the_hosts_address_is_named() -> None:
    assert fabric.environment(values(**interfaces())) == {"HCCL_SOCKET_IFNAME": "ens1-2"}
    elsewhere = {**interfaces(default_ipv4={"interface": "eth0"}), "fabric_address": "gaudi-1"}
    assert fabric.environment(values(**elsewhere)) == {"HCCL_SOCKET_IFNAME": "eth0"}
    assert fabric.environment(values(**{**elsewhere, **interfaces()})) == {}
    own = {"HCCL_SOCKET_IFNAME": "mine", "X": "1"}
    assert fabric.environment(values(**interfaces(), fabric_environment=own)) == own
    assert fabric.environment(values()) == {}, "ports of the cards need none"


@pytest.mark.parametrize("odd", [None, 5, "eth0", [None], [{"a": 1}], ["none"]])
def test_odd_interfaces_are_none(odd: Any) -> None:
    assert fabric.environment(values(**interfaces(interfaces=odd))) == {}


@pytest.mark.parametrize(
    ("known", "service", "left"),
    [
        (True, {"changed": False}, True),
        (False, {"changed": False}, False),
        (True, {"changed": True}, False),
        (True, {}, False),
    ],
)
def test_a_host_whose_switches_are_still_to_be_heard_is_not_left_out(known: bool, service: Any, left: bool) -> None:
    answers = {"fabric": {"files": [], "addresses_known": known}, "ports": {"down": []}, "lldpd": service}
    for given in (True, "yes"):
        assert fabric.PHASE.unchanged(values(fabric_lldp=given), answers) is left
    assert fabric.PHASE.unchanged(values(), {**answers, "lldpd": {}}) is known


def test_what_does_not_leave_hosts_is_said_once_for_all() -> None:
    down = {"_fabric_ports_state": {"down": ["card 0000:33:00.0 port 8"]}}
    hosts = {"a": down, "b": down, "c": {"_fabric_ports_state": {"down": []}}, "d": {**down, "fabric_ports": "up"}}
    several = values(hostvars=hosts, ansible_play_hosts=list(hosts), fabric_ports="reported", inventory_hostname="a")
    assert fabric.remarks_of_all(several) == ["a, b: External ports without a link: card 0000:33:00.0 port 8."]
    alone = {"ansible_play_hosts": ["a"], "groups": {"gaudi": ["a"]}, "hostvars": {"a": {}}, "inventory_hostname": "a"}
    assert fabric.remarks_of_all(values(**alone, fabric_kind="host_tcp")) == [
        "a: The cards show no network ports: collectives stay within this host."
    ]
    assert fabric.remarks_of_all(values(**alone, fabric_kind="gaudi")) == []


@pytest.mark.parametrize(
    ("given", "special"),
    [
        ({"fabric_kind": "gaudi"}, ""),
        ({"fabric_kind": "gaudi", "fabric_lldp": True}, "lldp"),
        ({"fabric_kind": "host_tcp"}, "host_tcp"),
        ({"fabric_kind": "host_tcp", "groups": {"gaudi": ["a"]}, "fabric_lldp": True}, ""),
        ({"fabric_kind": "none", "fabric_lldp": True}, ""),
    ],
)
def test_few_hosts_need_more_tasks(given: dict[str, Any], special: str) -> None:
    assert fabric.decide(values(ansible_facts={"distribution": "Ubuntu"}, **given))["special"] == special
