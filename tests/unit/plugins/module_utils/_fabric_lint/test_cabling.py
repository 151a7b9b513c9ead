"""Cables, as lldpd tells them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.cabling import Cable, compared, named, seen
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def neighbour(switch: str, port: str) -> dict[str, object]:
    """A neighbour as lldpcli 1.0.16 writes it with -f json."""
    return {
        "via": "LLDP",
        "chassis": {switch: {"id": {"type": "mac", "value": "02:00:00:00:00:01"}, "descr": "a switch"}},
        "port": {"id": {"type": "ifname", "value": port}, "descr": "10.200.10.2/30"},
    }


ONE = {"lldp": {"interface": {"hl0": neighbour("leaf1", "Ethernet1/1")}}}
SEVERAL = {
    "lldp": {"interface": [{"hl0": neighbour("leaf1", "Ethernet1/1")}, {"hl1": neighbour("leaf2", "Ethernet1/1")}]}
}
JSON0 = {
    "lldp": [
        {
            "interface": [
                {
                    "name": "hl0",
                    "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:01"}], "name": [{"value": "leaf1"}]}],
                    "port": [
                        {"id": [{"type": "mac", "value": "02:00:00:00:00:09"}], "descr": [{"value": "Ethernet1/1"}]}
                    ],
                }
            ]
        }
    ]
}
FIRST = Cable("gaudi-1", "hl0", "leaf1", "Ethernet1/1")
SECOND = Cable("gaudi-1", "hl1", "leaf2", "Ethernet1/1")


@pytest.mark.parametrize(
    ("answer", "cables"),
    [
        (ONE, [FIRST]),
        (SEVERAL, [FIRST, SECOND]),
        (JSON0, [FIRST]),
        (json.dumps(SEVERAL), [FIRST, SECOND]),
        ({"lldp": {}}, []),
        ({"lldp": [{}]}, []),
    ],
)
def test_one_neighbour_several_and_the_lists_of_json0(answer: object, cables: list[Cable]) -> None:
    assert seen("gaudi-1", answer) == cables


@pytest.mark.parametrize(("name", "ports"), [("one", [0]), ("one-json0", [0]), ("two", [0, 1]), ("two-json0", [0, 1])])
def test_what_lldpcli_1_0_16_printed_of_two_cables_between_namespaces(name: str, ports: list[int]) -> None:
    answer = (Path(__file__).parent / "lldpcli" / f"{name}.json").read_text()
    assert seen("gaudi-1", answer) == [Cable("gaudi-1", f"hl{port}", "leaf1", f"Ethernet{port}") for port in ports]


def test_an_answer_that_an_editor_has_marked_is_read() -> None:
    answer = json.dumps({"lldp": {"interface": {"hl0": neighbour("leaf1", "Ethernet1/1")}}})
    assert seen("gaudi-1", "\ufeff" + answer) == seen("gaudi-1", answer) != []


def test_a_neighbour_without_a_name_is_called_by_its_identifier() -> None:
    answer = {"lldp": {"interface": {"hl0": {"chassis": {"id": {"type": "mac", "value": "02:01"}}, "port": {}}}}}
    assert seen("gaudi-1", answer) == [Cable("gaudi-1", "hl0", "02:01", "?")]


@pytest.mark.parametrize("answer", ["", "lldpcli: no", [], {"interface": {}}, "[" * 100000])
def test_another_answer_is_refused_by_the_host_s_name(answer: object) -> None:
    with pytest.raises(Refusal, match=r"^the neighbours of gaudi-1 are no answer of lldpcli: give "):
        seen("gaudi-1", answer)


def test_cables_as_meant() -> None:
    assert compared([FIRST, SECOND], [SECOND, FIRST], ["gaudi-1"]) == []
    assert compared([], [FIRST], ["gaudi-1"]) == [], "without a plan nothing is judged"


def test_two_crossed_cables_are_both_named() -> None:
    crossed = [Cable("gaudi-1", "hl0", "leaf2", "Ethernet1/1"), Cable("gaudi-1", "hl1", "leaf1", "Ethernet1/1")]
    faults = compared([FIRST, SECOND], crossed, ["gaudi-1"])
    assert [(each.rule, each.port, each.given, each.wanted) for each in faults] == [
        ("miswired", "hl0", "leaf2 Ethernet1/1", "leaf1 Ethernet1/1"),
        ("miswired", "hl1", "leaf1 Ethernet1/1", "leaf2 Ethernet1/1"),
    ]
    assert faults[0].cure == "move the cable of gaudi-1 hl0 from leaf2 Ethernet1/1 to leaf1 Ethernet1/1"


@pytest.mark.parametrize(
    ("seen_as", "known", "called"),
    [
        ("leaf1.example.org", {"leaf1"}, "leaf1"),
        ("leaf1", {"leaf1.example.org"}, "leaf1.example.org"),
        ("leaf1.example.org", {"leaf1", "leaf1.example.org"}, "leaf1.example.org"),
        ("leaf1.hall1", {"leaf1.hall2"}, "leaf1.hall1"),
        ("leaf1", {"leaf1.hall1", "leaf1.hall2"}, "leaf1"),
        ("leaf11.example.org", {"leaf1"}, "leaf11.example.org"),
    ],
)
def test_a_switch_has_the_site_s_name_with_a_domain_or_without(seen_as: str, known: set[str], called: str) -> None:
    assert named([Cable("gaudi-1", "hl0", seen_as, "Ethernet1/1")], known)[0].switch == called


def test_two_switches_of_one_label_keep_their_names() -> None:
    found = [Cable("gaudi-1", f"hl{hall}", f"leaf1.hall{hall}", "Ethernet1/1") for hall in (1, 2)]
    assert named(found, {"leaf1"}) == found


def test_two_hosts_that_see_one_port_are_both_named() -> None:
    """Of two answers one is old, or two switches have one name."""
    other = Cable("gaudi-2", "hl0", FIRST.switch, FIRST.switch_port)
    faults = compared([], [FIRST, SECOND, other], ["gaudi-1", "gaudi-2"])
    assert [(each.rule, each.host, each.given, each.wanted) for each in faults] == [
        ("shared", "gaudi-1", "leaf1 Ethernet1/1, which gaudi-2 hl0 sees, too", "a port of its own"),
        ("shared", "gaudi-2", "leaf1 Ethernet1/1, which gaudi-1 hl0 sees, too", "a port of its own"),
    ]


def test_missing_doubled_unknown_and_silent() -> None:
    stranger = Cable("gaudi-2", "hl7", "leaf1", "Ethernet1/1")
    doubled = Cable("gaudi-1", "hl1", "leaf9", "Ethernet7")
    faults = compared(
        [FIRST, SECOND, Cable("gaudi-3", "hl0", "leaf1", "Ethernet3/1")],
        [SECOND, doubled, stranger],
        ["gaudi-1", "gaudi-2"],
    )
    assert [(each.rule, each.host, each.port) for each in faults] == [
        ("silent", "gaudi-3", ""),
        ("missing", "gaudi-1", "hl0"),
        ("doubled", "gaudi-1", "hl1"),
        ("unknown", "gaudi-2", "hl7"),
    ]
    assert faults[1].cure == "plug hl0 of gaudi-1 into leaf1 Ethernet1/1; gaudi-2 hl7 is plugged in there"
