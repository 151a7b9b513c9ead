"""The rules on switches, in each language that a configuration can have."""

from __future__ import annotations

import pytest
from fabric_cases import HEALTHY, PLANTED, WANTED

from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.rules import RULES, lint, read, wanted
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


@pytest.mark.parametrize("syntax", HEALTHY)
def test_a_healthy_switch_has_no_finding(syntax: str) -> None:
    port, text = HEALTHY[syntax]
    switch = read("leaf1", syntax, text)
    assert lint(switch, [port], wanted(WANTED), {port: 9000}) == []
    assert switch.others > 0, "lines on other subjects are counted"


@pytest.mark.parametrize(("syntax", "rule", "old", "new", "given"), PLANTED)
def test_a_planted_disagreement_is_named(syntax: str, rule: str, old: str, new: str, given: str) -> None:
    port, text = HEALTHY[syntax]
    assert text.count(old) == 1
    findings = lint(read("leaf1", syntax, text.replace(old, new)), [port], wanted(WANTED))
    assert (rule, given) in [(each.rule, each.given) for each in findings]
    named = [each for each in findings if each.rule == rule]
    assert all(each.switch == "leaf1" and each.port in (port, "") and each.cure for each in named)


@pytest.mark.parametrize("syntax", HEALTHY)
def test_a_frame_of_the_host_has_to_fit(syntax: str) -> None:
    port, text = HEALTHY[syntax]
    (finding,) = lint(read("leaf1", syntax, text), [port], wanted(WANTED), {port: 9300})
    assert (finding.rule, finding.wanted) == ("host-mtu", "9300 or more")
    assert finding.cure == f"set the MTU of {port} to 9300 or more: the host behind it sends frames of 9300"


@pytest.mark.parametrize("syntax", HEALTHY)
def test_a_port_that_is_not_there(syntax: str) -> None:
    (finding,) = lint(read("leaf1", syntax, HEALTHY[syntax][1]), ["Ethernet99"], wanted({}))
    assert (finding.rule, finding.port) == ("no-port", "Ethernet99")


def test_every_rule_has_a_planted_disagreement_in_every_language() -> None:
    planted = {(syntax, rule) for syntax, rule, *_rest in PLANTED}
    assert planted == {(syntax, rule) for syntax in HEALTHY for rule in RULES if not rule.startswith(("host-", "no-"))}


@pytest.mark.parametrize("syntax", HEALTHY)
@pytest.mark.parametrize("text", ["", "hello", "{}", "[" * 100000, '{"PORT": 3}', "interface Vlan1\n mtu 9000\n"])
def test_what_is_no_configuration_is_refused_by_the_switch_s_name(syntax: str, text: str) -> None:
    with pytest.raises(Refusal, match=r"^switch leaf1: (the configuration|table) .*: give "):
        read("leaf1", syntax, text)


def test_a_setting_of_another_port_is_not_this_one_s_finding() -> None:
    text = HEALTHY["eos"][1] + "interface Ethernet2/1\n   qos cos 5\n"
    switch = read("leaf1", "eos", text)
    assert lint(switch, ["Ethernet1/1"], wanted(WANTED)) == []
    assert [each.rule for each in lint(switch, ["Ethernet2/1"], wanted({}))] == ["unread"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mtu": 90000}, "the wanted mtu is 90000: give bytes from 576 to 16000."),
        ({"vlan": 0}, "the wanted vlan is 0: give a number from 1 to 4094."),
        ({"pfc": [8]}, "the wanted pfc 8 is none: give a number from 0 to 7."),
        ({"dscp": {64: 1}}, "the wanted dscp 64 is none: give a number from 0 to 63."),
        (
            {"ecn": {3: {"min": 5}}},
            "the wanted ecn of priority 3 is {'min': 5}: give min and max in bytes, such as min 150000, max 1500000.",
        ),
    ],
)
def test_a_wish_that_no_switch_can_have_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(Refusal) as refusal:
        wanted(given)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "line", ["description vlan 7, mtu 1500", "no priority-flow-control priority 5", "no switchport port-security vlan"]
)
def test_remarks_and_what_is_unset_are_no_findings(line: str) -> None:
    switch = read("leaf1", "eos", HEALTHY["eos"][1] + f"   {line}\n")
    assert lint(switch, ["Ethernet1/1"], wanted(WANTED)) == []


def test_flow_control_that_is_switched_off_pauses_nothing() -> None:
    switch = read("leaf1", "eos", HEALTHY["eos"][1] + "   no priority-flow-control\n")
    assert [(each.rule, each.given) for each in lint(switch, ["Ethernet1/1"], wanted(WANTED))] == [("pfc", "none")]


def test_the_first_class_of_a_policy_that_matches_counts() -> None:
    text = HEALTHY["nxos"][1].replace("  match dscp 16\n", "  match dscp 16,24\n")
    assert lint(read("leaf1", "nxos", text), ["Ethernet1/1"], wanted(WANTED)) == []


def test_queues_that_are_not_numbered_as_priorities_are_named() -> None:
    maps = '"tc_to_queue_map": "Q", "tc_to_pg_map"'
    text = (
        HEALTHY["sonic"][1]
        .replace('"tc_to_pg_map"', maps)
        .replace('"QUEUE"', '"TC_TO_QUEUE_MAP": {"Q": {"2": "QQ"}}, "QUEUE"')
    )
    crossed = read("leaf1", "sonic", text.replace("QQ", "5"))
    assert [each.given for each in lint(crossed, ["Ethernet0"], wanted(WANTED))] == [
        "PORT_QOS_MAP|Ethernet0 tc_to_queue_map: {2: 5}"
    ]
    assert lint(read("leaf1", "sonic", text.replace("QQ", "2")), ["Ethernet0"], wanted(WANTED)) == []


@pytest.mark.parametrize("syntax", ["eos", "nxos"])
@pytest.mark.parametrize(("mode", "vlan"), [("access", 17), ("trunk", 1), ("trunk phone", 1), ("", 17)])
def test_a_port_with_the_vlans_of_both_modes_has_that_of_its_own(syntax: str, mode: str, vlan: int) -> None:
    lines = ["interface Ethernet1/1", "  switchport access vlan 17", "  switchport trunk native vlan 1"]
    text = "\n".join([*lines, *([f"  switchport mode {mode}"] if mode else []), ""])
    assert read("leaf1", syntax, text).ports["Ethernet1/1"].vlan == vlan


@pytest.mark.parametrize("syntax", ["eos", "nxos"])
def test_names_secrets_and_filters_with_a_word_of_the_subject_are_other_subjects(syntax: str) -> None:
    text = """\
username admin privilege 15 secret sha512 $6$ecn/mtu.qos
no spanning-tree vlan-id 4093-4094
mlag configuration
   local-interface Vlan4094
ip access-list FILTER
   10 permit udp any any dscp 26
interface Ethernet1/1
   mtu 9214
   no lldp tlv-set vlan
   l2 mtu 8000
"""
    switch = read("leaf1", syntax, text)
    assert [each.text for each in switch.unread] == ["l2 mtu 8000"]


def test_ports_of_ranges_are_ports_of_their_own() -> None:
    """A switch that splits its ports writes swp1-2s0-1, and what has one prefix without it."""
    text = HEALTHY["cumulus"][1].replace("swp1-2 link", "swp1-2s0-1,swp5,7 link").replace("swp1 ", "swp1s0-1,7 ")
    switch = read("leaf1", "cumulus", text)
    assert sorted(switch.ports) == ["swp1s0", "swp1s1", "swp2s0", "swp2s1", "swp5", "swp7"]
    assert lint(switch, ["swp1s0", "swp1s1", "swp7"], wanted(WANTED)) == []
    assert [each.rule for each in lint(switch, ["swp2s1"], wanted({"mtu": 9000, "vlan": 10}))] == ["vlan"]
    for name in ("swp1-9999s0-9999", "swp" + "1-1s" * 2000, "swp" + "1" * 5000 + "-1"):
        assert read("leaf1", "cumulus", f"nv set interface {name} link mtu 9000").ports.keys() == {name}


def test_bridges_and_names_of_cumulus_are_other_subjects() -> None:
    text = (
        HEALTHY["cumulus"][1]
        + """\
nv set bridge domain br_default vlan 10,20
nv set bridge domain br_default vlan 10 vni 10
nv set bridge domain br_default type vlan-aware
nv set interface swp1 bridge domain br_default vlan 10-20
nv set interface swp1 description 'mtu 9000, vlan 7'
nv set interface vlan10 ip address 10.1.10.2/24
nv set system timezone Etc/UTC
nv set system snmp-server mtu public
"""
    )
    assert lint(read("leaf1", "cumulus", text), ["swp1"], wanted(WANTED)) == []
    shared = text.replace("br_default access 10", "br_default") + "nv set bridge domain br_default untagged 10\n"
    assert lint(read("leaf1", "cumulus", shared), ["swp1"], wanted(WANTED)) == []


def test_a_port_that_pauses_all_is_named() -> None:
    text = HEALTHY["sonic"][1].replace('"alias": "etp1"', '"alias": "etp1", "pfc_asym": "on"')
    assert [each.given for each in lint(read("leaf1", "sonic", text), ["Ethernet0"], wanted(WANTED))] == [
        "PORT|Ethernet0 pfc_asym: on"
    ]
    assert lint(read("leaf1", "sonic", text.replace('"on"', '"off"')), ["Ethernet0"], wanted(WANTED)) == []


@pytest.mark.parametrize("syntax", ["eos", "nxos"])
def test_a_port_that_stands_there_twice_has_what_both_say(syntax: str) -> None:
    port, text = HEALTHY[syntax]
    again = text + f"interface {port}\n   description again\n   mtu 1500\n"
    found = lint(read("leaf1", syntax, again), [port], wanted(WANTED))
    assert [(each.rule, each.given) for each in found] == [("mtu", "1500")]


@pytest.mark.parametrize("syntax", sorted(HEALTHY))
def test_a_number_that_no_switch_has_is_named_and_stops_nothing(syntax: str) -> None:
    port, text = HEALTHY[syntax]
    size = {"eos": "mtu 9214", "nxos": "  mtu 9216\n  switch", "sonic": '"mtu": "9100"', "cumulus": "link mtu 9216"}[
        syntax
    ]
    spoilt = text.replace(size, size.replace("9", "9" * 5000, 1))
    assert {each.rule for each in lint(read("leaf1", syntax, spoilt), [port], wanted(WANTED))} == {"mtu", "unread"}
    low = text.replace("150000", "1" * 5000, 1).replace("150 kb", "1" * 5000 + " kb", 1)
    assert {each.rule for each in lint(read("leaf1", syntax, low), [port], wanted(WANTED))} == {"ecn", "unread"}


def test_a_list_that_runs_backwards_is_none() -> None:
    text = HEALTHY["eos"][1].replace("priority 0-3", "priority 3-0")
    assert {each.rule for each in lint(read("leaf1", "eos", text), ["Ethernet1/1"], wanted(WANTED))} == {
        "pfc",
        "unread",
    }
