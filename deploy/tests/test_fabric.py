"""The command fabric lint: the findings of the module, as lines, and inputs that are refused in a sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Deploy

sys.path.append(str(ROOT / "tests/unit/plugins"))

from fabric_cases import HEALTHY

SITE = """\
wanted: {mtu: 9000, pfc: [0, 1, 2, 3], dscp: {24: 2, 16: 3}, ecn: {2: {min: 150000, max: 1500000}}, vlan: 10}
cables:
  - {host: gaudi-1, port: hl0, switch: leaf1, switch_port: Ethernet1/1}
"""
NEIGHBOURS = {"lldp": [{"interface": [{
    "name": "hl0", "chassis": [{"name": [{"value": "leaf1"}]}],
    "port": [{"id": [{"type": "ifname", "value": "Ethernet1/1"}]}],
}]}]}  # fmt: skip


@pytest.fixture(name="site")
def files(deploy: Deploy) -> Path:
    """The site's wish, a host's neighbours, and a healthy switch of EOS."""
    (deploy.folder / "site.yml").write_text(SITE)
    (deploy.folder / "gaudi-1.json").write_text(json.dumps(NEIGHBOURS))
    (deploy.folder / "leaf1.cfg").write_text(HEALTHY["eos"][1])
    return deploy.folder


@pytest.mark.parametrize("syntax", HEALTHY)
def test_a_healthy_switch_of_each_language_is_told_by_its_text(deploy: Deploy, site: Path, syntax: str) -> None:
    port, text = HEALTHY[syntax]
    (site / "spine.cfg").write_text(text)
    (site / "wish.yml").write_text(SITE.partition("cables")[0])
    said = deploy.run("fabric", "lint", "spine.cfg", "--site", "wish.yml", "--port", f"spine:{port}")
    assert said == "1 port, 1 switch, 0 cables: 0 findings\n"


def test_files_of_an_editor_that_marks_them_are_read(deploy: Deploy, site: Path) -> None:
    (site / "leaf9.json").write_text(HEALTHY["sonic"][1].replace("\n", "\r\n"), encoding="utf-8-sig")
    (site / "marked.json").write_text((site / "gaudi-1.json").read_text(), encoding="utf-8-sig")
    deploy.run("fabric", "lint", "leaf9.json", "--port", "leaf9:Ethernet0")
    assert deploy.run("fabric", "cables", "gaudi-1=marked.json") == deploy.run(
        "fabric", "cables", "gaudi-1=gaudi-1.json"
    )


def test_ports_come_from_neighbours_and_findings_have_their_cure(deploy: Deploy, site: Path) -> None:
    words = ("leaf1.cfg", "--site", "site.yml", "--neighbours", "gaudi-1=gaudi-1.json")
    assert deploy.run("fabric", "lint", *words) == "1 port, 1 switch, 1 cable: 0 findings\n"
    (site / "leaf1.cfg").write_text(HEALTHY["eos"][1].replace("mtu 9214", "mtu 1500"))
    assert deploy.run("fabric", "lint", *words, code=1).splitlines() == [
        "leaf1 Ethernet1/1: mtu: 1500, wanted 9000 or more",
        "    do: set the MTU of Ethernet1/1 to 9000",
        "1 port, 1 switch, 1 cable: 1 finding",
    ]
    answer = json.loads(deploy.run("fabric", "lint", *words, "--json", code=1))
    assert (answer["schema"], answer["ok"], answer["findings"][0]["rule"]) == (1, False, "mtu")


def test_a_cable_in_another_port_is_a_finding(deploy: Deploy, site: Path) -> None:
    (site / "site.yml").write_text(SITE.replace("Ethernet1/1", "Ethernet2/1"))
    said = deploy.run(
        "fabric", "lint", "leaf1.cfg", "--site", "site.yml", "--neighbours", "gaudi-1=gaudi-1.json", code=1
    )
    assert "gaudi-1 hl0: miswired: leaf1 Ethernet1/1, wanted leaf1 Ethernet2/1\n" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.cfg",), "none.cfg cannot be read"),
        (("leaf1.cfg",), "Switch leaf1: no port of it is given and no host is plugged into it"),
        (("leaf1.cfg", "--syntax", "junos"), "--syntax is 'junos': give one of cumulus, eos, nxos, sonic."),
        (("odd.cfg", "--port", "odd:1"), "The language of odd.cfg is not clear from its text: give --syntax"),
        (("leaf1.cfg", "--port", "leaf1"), "--port is 'leaf1': give SWITCH:PORT"),
        (("leaf1.cfg", "--port", "leaf2:1"), "--port names the switch leaf2, and no FILE is named after it"),
        (("leaf1.cfg", "--neighbours", "gaudi-1"), "The neighbours 'gaudi-1' name no host: give HOST=FILE"),
        (("leaf1.cfg", "--neighbours", "gaudi-1=odd.cfg"), "The neighbours of gaudi-1 are no answer of lldpcli"),
        (("leaf1.cfg", *("--neighbours", "a=odd.cfg") * 2), "The neighbours of a are given 2 times: give them once."),
        (("leaf1.cfg", "--site", "a.yml"), "a.yml has switches: give a mapping of wanted, cables, host_mtus."),
        (("leaf1.cfg", "--site", "b.yml"), "wanted of b.yml is {'speed': 1}: give a mapping of mtu, pfc, dscp"),
        (("leaf1.cfg", "--site", "c.yml"), "cables of c.yml is no list of cables"),
        (("leaf1.cfg", "--site", "d.yml"), "host_mtus of d.yml is {'gaudi-1': 4}: give bytes by host and port."),
        (("leaf1.cfg", "--site", "e.yml"), "e.yml is no YAML"),
        (("leaf1.cfg", "--site", "f.yml"), "The wanted mtu is 5: give bytes from 576 to 16000."),
    ],
)
def test_what_cannot_be_read_is_refused(deploy: Deploy, site: Path, words: tuple[str, ...], said: str) -> None:
    odd = {
        "a.yml": "switches: []", "b.yml": "wanted: {speed: 1}", "c.yml": "cables: [{host: a}]",
        "d.yml": "host_mtus: {gaudi-1: 4}", "e.yml": "{", "f.yml": "wanted: {mtu: 5}", "odd.cfg": "hello\n",
    }  # fmt: skip
    for name, text in odd.items():
        (site / name).write_text(text)
    assert said in deploy.run("fabric", "lint", *words, code=2)


def test_cables_that_hosts_see_are_written_as_a_site_takes_them(deploy: Deploy, site: Path) -> None:
    said = deploy.run("fabric", "cables", "gaudi-1=gaudi-1.json")
    assert said == "cables:\n  - {host: gaudi-1, port: hl0, switch: leaf1, switch_port: Ethernet1/1}\n"
    (site / "site.yml").write_text(said)
    words = ("leaf1.cfg", "--site", "site.yml", "--neighbours", "gaudi-1=gaudi-1.json")
    assert deploy.run("fabric", "lint", *words).startswith("1 port, 1 switch, 1 cable: 0 findings\n")
    answer = json.loads(deploy.run("fabric", "cables", "gaudi-1=gaudi-1.json", "--json"))
    assert [each["switch_port"] for each in answer["cables"]] == ["Ethernet1/1"]


def test_a_port_with_two_neighbours_and_a_host_with_none_are_named(deploy: Deploy, site: Path) -> None:
    twice = json.loads(json.dumps(NEIGHBOURS))
    twice["lldp"][0]["interface"] += json.loads(json.dumps(NEIGHBOURS).replace("1/1", "2/1"))["lldp"][0]["interface"]
    (site / "two.json").write_text(json.dumps(twice))
    said = deploy.run("fabric", "cables", "gaudi-1=two.json", code=1)
    assert "gaudi-1 hl0 has two neighbours, leaf1 Ethernet1/1, leaf1 Ethernet2/1: look for a hub or a bridge" in said
    said = deploy.run("fabric", "cables", "gaudi-1=gaudi-1.json", "gaudi-2=gaudi-1.json", code=1)
    assert "gaudi-1 hl0 sees leaf1 Ethernet1/1, which gaudi-2 hl0 sees, too: ask these hosts again" in said
    (site / "none.json").write_text('{"lldp": [{}]}')
    assert "gaudi-2 sees no neighbour: take its ports up" in deploy.run("fabric", "cables", "gaudi-2=none.json", code=1)


def heard(port: int, description: str) -> dict[str, object]:
    """A switch's port, as lldpcli 1.0.16 writes it with -f json0."""
    return {
        "name": f"hl{port}",
        "chassis": [{"id": [{"type": "mac", "value": "06:05:04:03:02:01"}], "name": [{"value": "leaf1"}]}],
        "port": [{"id": [{"type": "ifname", "value": f"Ethernet{port}"}], "descr": [{"value": description}]}],
    }


GAUDINET = (
    "fabric", "gaudinet", "gaudi-1=routed.json", "--site", "routed.yml", "--links", "gaudi-1=links.json",
    "--into", "out",
)  # fmt: skip


@pytest.fixture(name="routed")
def routed_fabric(deploy: Deploy) -> Path:
    """A host with two cables to a switch that describes its ports by their addresses."""
    folder = deploy.folder
    found = {"lldp": [{"interface": [heard(0, "10.0.1.2/30"), heard(1, "gaudi-1 10.0.1.6/30")]}]}
    (folder / "routed.json").write_text(json.dumps(found))
    rows = [f"  - {{host: gaudi-1, port: hl{n}, switch: leaf1, switch_port: Ethernet{n}}}" for n in range(2)]
    (folder / "routed.yml").write_text("\n".join(["cables:", *rows, ""]))
    links = [{"ifname": "lo"}, *({"ifname": f"hl{n}", "address": f"02:00:00:00:00:0{n}"} for n in range(2))]
    (folder / "links.json").write_text(json.dumps(links))
    return folder


def test_addresses_of_a_routed_fabric_are_written_whole_and_once(deploy: Deploy, routed: Path) -> None:
    shown = deploy.run(*GAUDINET, "--check")
    assert shown.endswith("+}\nout/gaudi-1.json: changed\n") and '+      "NIC_IP": "10.0.1.5",' in shown
    assert not (routed / "out").exists()
    assert deploy.run(*GAUDINET) == shown
    written = json.loads((routed / "out/gaudi-1.json").read_text())["NIC_NET_CONFIG"]
    assert written[0] == {
        "NIC_MAC": "02:00:00:00:00:00", "NIC_IP": "10.0.1.1", "SUBNET_MASK": "255.255.255.252",
        "GATEWAY_MAC": "06:05:04:03:02:01",
    }  # fmt: skip
    assert deploy.run(*GAUDINET) == "out/gaudi-1.json: as it is to be\n"
    answer = json.loads(deploy.run(*GAUDINET, "--json"))
    assert answer["files"] == [{"path": "out/gaudi-1.json", "changed": False, "diff": []}]


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        (
            "routed.yml",
            "Ethernet1",
            "Ethernet7",
            "Port hl1 of gaudi-1 is plugged into leaf1 Ethernet1, and the table of",
        ),
        (
            "routed.yml",
            "host: gaudi-1",
            "host: gaudi-2",
            "cables of routed.yml have no port of gaudi-1: give its cables",
        ),
        ("routed.yml", "Ethernet1", "Ethernet0", "Cables has leaf1 Ethernet0 more than once: give the cable of each"),
        ("links.json", "hl1", "ens1", "gaudi-1 has no device hl1, which cables of routed.yml name"),
        ("links.json", "[", "", "links.json is no answer of `ip -json link`: give what it printed there."),
        ("routed.json", "10.0.1.6/30", "here", "is described as 'gaudi-1 here', which has no address: describe it"),
    ],
)
def test_no_address_is_guessed(deploy: Deploy, routed: Path, name: str, before: str, after: str, said: str) -> None:
    (routed / name).write_text((routed / name).read_text().replace(before, after))
    assert said in deploy.run(*GAUDINET, code=2)
    assert not (routed / "out").exists()
