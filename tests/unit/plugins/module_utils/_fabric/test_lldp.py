"""gaudinet.json from what switches tell by LLDP, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._fabric import lldp
from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.cabling import Cable
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

PORTS = [lldp.HostPort("hl0", "02:00:00:00:00:01"), lldp.HostPort("hl1", "02:00:00:00:00:02")]
SWITCH = "06:05:04:03:02:01"


def neighbour(port: str, name: str, description: str, switch: str = "leaf1", **more: Any) -> dict[str, Any]:
    """A neighbour as lldpcli 1.0.16 writes it with -f json0."""
    return {
        "name": port,
        "via": "LLDP",
        "chassis": [{"id": [{"type": "mac", "value": SWITCH}], "name": [{"value": switch}]}],
        "port": [{"id": [{"type": "ifname", "value": name}], "descr": [{"value": description}]}],
        **more,
    }


def answer(*found: dict[str, Any]) -> str:
    return json.dumps({"lldp": [{"interface": list(found)}]})


FIRST = neighbour("hl0", "Ethernet1", "gaudi-1 10.200.10.2/30")
SECOND = neighbour("hl1", "Ethernet2", "10.200.10.5/30")


def test_each_port_gets_the_other_address_of_its_network_and_the_switch_as_gateway() -> None:
    elsewhere = neighbour("eth0", "Ethernet48", "uplink of the office")
    assert lldp.entries("gaudi-1", PORTS, answer(SECOND, FIRST, elsewhere)) == [
        {
            "nic_mac": "02:00:00:00:00:01",
            "nic_ip": "10.200.10.1",
            "subnet_mask": "255.255.255.252",
            "gateway_mac": SWITCH,
        },
        {
            "nic_mac": "02:00:00:00:00:02",
            "nic_ip": "10.200.10.6",
            "subnet_mask": "255.255.255.252",
            "gateway_mac": SWITCH,
        },
    ]


@pytest.mark.parametrize("name", ["addresses", "addresses-json0"])
def test_what_lldpcli_1_0_16_printed_of_two_described_ports_between_namespaces(name: str) -> None:
    folder = Path(__file__).parents[1] / "_fabric_lint/lldpcli"
    found = lldp.entries("gaudi-1", PORTS, (folder / f"{name}.json").read_text())
    assert [(each["nic_ip"], each["gateway_mac"]) for each in found] == [
        ("10.200.10.1", "a6:a1:95:ff:6d:99"),
        ("10.200.10.5", "a6:a1:95:ff:6d:99"),
    ]


def test_a_port_that_identifies_itself_by_its_own_mac_address_is_the_gateway() -> None:
    port = [{"id": [{"type": "mac", "value": "06:00:00:00:00:0A"}], "descr": [{"value": "x 10.200.10.2/30"}]}]
    (entry,) = lldp.entries("gaudi-1", PORTS[:1], answer({**FIRST, "port": port}))
    assert entry["gateway_mac"] == "06:00:00:00:00:0a"


def test_one_neighbour_as_an_object_and_a_switch_that_is_called_id() -> None:
    for name in ("leaf1", "id"):
        plain = {
            "chassis": {name: {"id": {"type": "mac", "value": SWITCH}}},
            "port": {"id": {"type": "ifname", "value": "Ethernet1"}, "descr": "10.200.10.2/30"},
        }
        found = {"lldp": {"interface": {"hl0": plain}}}
        if name == "leaf1":
            assert lldp.entries("gaudi-1", PORTS[:1], found)[0]["nic_ip"] == "10.200.10.1"
        else:  # which cannot be told from an identifier, and json0 is asked for
            with pytest.raises(Refusal, match="tells no MAC address of its own"):
                lldp.entries("gaudi-1", PORTS[:1], found)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([FIRST], "port hl1 of gaudi-1 has no LLDP neighbour: plug it in, bring it up"),
        (
            [FIRST, SECOND, neighbour("hl1", "Ethernet9", "10.200.10.33/30", "leaf9")],
            "port hl1 of gaudi-1 has 2 LLDP neighbours, leaf1 Ethernet2 and leaf9 Ethernet9: look for a hub",
        ),
        (
            [FIRST, neighbour("hl1", "Ethernet1", "10.200.10.5/30")],
            "ports hl0 and hl1 of gaudi-1 both claim leaf1 Ethernet1: give each port",
        ),
        (
            [FIRST, neighbour("hl1", "Ethernet2", "")],
            "leaf1 Ethernet2, at port hl1 of gaudi-1, is described as '', which",
        ),
        ([FIRST, neighbour("hl1", "Ethernet2", "1.1.1.1/30 2.2.2.2/30")], "which has several addresses"),
        ([FIRST, neighbour("hl1", "Ethernet2", "10.0.0.999/30")], "which has no valid address"),
        ([FIRST, neighbour("hl1", "Ethernet2", "10.200.10.4/30")], "which is no end of a network of two"),
        ([FIRST, neighbour("hl1", "Ethernet2", "10.200.10.5/31")], "which is no end of a network of two"),
        ([FIRST, neighbour("hl1", "Ethernet2", "10.200.10.5/3\u0660")], "which has no address"),
        ([FIRST, neighbour("hl1", "Ethernet2", "10.200.10.2/30")], "entry 2 of the port addresses repeats nic_ip"),
        ([FIRST, {**SECOND, "chassis": [{"name": [{"value": "leaf1"}]}]}], "and tells no MAC address of its own"),
        (
            [FIRST, {**SECOND, "chassis": [{"id": [{"type": "mac", "value": "01:80:c2:00:00:0e"}]}]}],
            "and tells no MAC address of its own",
        ),
        ([FIRST, neighbour("hl1", "Ethernet2", "x" * 256)], "tells a text of 256 characters, and LLDP has at most 255"),
        ([FIRST, neighbour("hl1", "\x1b[31mred", "")], r"leaf1 \\x1b\[31mred, at port hl1"),
    ],
)
def test_what_a_neighbour_leaves_open_is_refused(found: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(Refusal, match=said.replace("(", r"\(")) as refusal:
        lldp.entries("gaudi-1", PORTS, answer(*found))
    assert str(refusal.value).isprintable()


def test_a_table_of_cables_is_held_against_what_is_plugged_in() -> None:
    table = [Cable("gaudi-1", "hl0", "leaf1", "Ethernet1"), Cable("gaudi-2", "hl0", "leaf1", "Ethernet7")]
    with pytest.raises(Refusal, match=r"^port hl1 of gaudi-1 is plugged into leaf1 Ethernet2, and .* has no cable"):
        lldp.entries("gaudi-1", PORTS, answer(FIRST, SECOND), table)
    table += [Cable("gaudi-1", "hl1", "leaf2", "Ethernet2")]
    said = (
        r"^port hl1 of gaudi-1 is plugged into leaf1 Ethernet2, and the table of cables has leaf2 Ethernet2: "
        r"move the cable of gaudi-1 hl1 from leaf1 Ethernet2 to leaf2 Ethernet2[.]$"
    )
    with pytest.raises(Refusal, match=said):
        lldp.entries("gaudi-1", PORTS, answer(FIRST, SECOND), table)
    table[-1] = Cable("gaudi-1", "hl1", "leaf1", "Ethernet2")
    assert len(lldp.entries("gaudi-1", PORTS, answer(FIRST, SECOND), table)) == 2


def test_without_a_driver_there_is_no_port_to_ask_for() -> None:
    with pytest.raises(Refusal, match=r"^gaudi-1 shows no external port: load the driver"):
        lldp.entries("gaudi-1", [], answer(FIRST))


def test_who_waits_is_told_which_ports_are_lacking() -> None:
    assert lldp.lacking(PORTS, "gaudi-1", answer(SECOND)) == ["hl0"]
