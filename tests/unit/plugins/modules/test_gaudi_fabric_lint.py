"""The module that holds switches and cables against what the site wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fabric_cases import EOS, HEALTHY, WANTED

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_fabric_lint

NEIGHBOURS = {
    "gaudi-1": {
        "lldp": {
            "interface": {
                "hl0": {"chassis": {"leaf1": {}}, "port": {"id": {"type": "ifname", "value": "Ethernet1/1"}}},
            }
        }
    }
}


@pytest.mark.parametrize("syntax", HEALTHY)
def test_a_healthy_switch(run_module: Any, tmp_path: Path, syntax: str) -> None:
    port, text = HEALTHY[syntax]
    (tmp_path / "leaf1").write_text(text)
    switch = {"name": "leaf1", "syntax": syntax, "path": str(tmp_path / "leaf1"), "ports": [port]}
    result = run_module(gaudi_fabric_lint, switches=[switch], wanted=WANTED, check=True)
    assert (result["changed"], result["ok"], result["findings"]) == (False, True, [])
    assert (result["switches"][0]["ports"], result["switches"][0]["unread"]) == (1, 0)


def test_the_port_behind_a_host_is_judged_by_the_host_s_frames(run_module: Any, tmp_path: Path) -> None:
    (tmp_path / "leaf1").write_text(EOS.replace("mtu 9214", "mtu 1500"))
    switch = {"name": "leaf1", "syntax": "eos", "path": str(tmp_path / "leaf1")}
    cable = {"host": "gaudi-1", "port": "hl0", "switch": "leaf1", "switch_port": "Ethernet1/1"}
    given = {"switches": [switch], "neighbours": NEIGHBOURS, "cables": [cable], "host_mtus": {"gaudi-1": {"hl0": 9000}}}
    result = run_module(gaudi_fabric_lint, **given)
    assert (result["ok"], result["cables"], result["miswired"]) == (False, [cable], [])
    assert result["findings"] == [
        {
            "switch": "leaf1",
            "port": "Ethernet1/1",
            "rule": "host-mtu",
            "given": "1500",
            "wanted": "9000 or more",
            "cure": "set the MTU of Ethernet1/1 to 9000 or more: the host behind it sends frames of 9000",
        }
    ]


def test_a_port_that_sonic_announces_by_its_alias_is_found(run_module: Any, tmp_path: Path) -> None:
    (tmp_path / "leaf1").write_text(HEALTHY["sonic"][1].replace('"9100"', '"1500"'))
    switch = {"name": "leaf1", "syntax": "sonic", "path": str(tmp_path / "leaf1"), "ports": ["etp1"]}
    heard = {"type": "local", "value": "etp1"}
    neighbours = {"gaudi-1": {"lldp": {"interface": {"hl0": {"chassis": {"leaf1.dc": {}}, "port": {"id": heard}}}}}}
    cable = {"host": "gaudi-1", "port": "hl0", "switch": "leaf1", "switch_port": "etp1"}
    given = {"switches": [switch], "neighbours": neighbours, "cables": [cable], "host_mtus": {"gaudi-1": {"hl0": 9000}}}
    result = run_module(gaudi_fabric_lint, **given)
    assert [(each["rule"], each["port"]) for each in result["findings"]] == [("host-mtu", "Ethernet0")]
    assert (result["cables"], result["miswired"]) == ([cable], [])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"switch_port": "Ethernet2/1"}, "cables has gaudi-1 hl0 more than once: give the cable of each port once."),
        ({"port": "hl1"}, "cables has leaf1 Ethernet1/1 more than once: give the cable of each port once."),
    ],
)
def test_a_table_with_two_cables_in_one_port_is_refused(run_module: Any, other: dict[str, str], said: str) -> None:
    cable = {"host": "gaudi-1", "port": "hl0", "switch": "leaf1", "switch_port": "Ethernet1/1"}
    assert run_module(gaudi_fabric_lint, neighbours=NEIGHBOURS, cables=[cable, {**cable, **other}])["msg"] == said


def test_a_cable_alone_makes_it_not_ok(run_module: Any) -> None:
    cable = {"host": "gaudi-1", "port": "hl0", "switch": "leaf1", "switch_port": "Ethernet2/1"}
    result = run_module(gaudi_fabric_lint, neighbours=NEIGHBOURS, cables=[cable])
    assert (result["ok"], [each["rule"] for each in result["miswired"]]) == (False, ["miswired"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "switch leaf1: PATH cannot be read (No such file or directory): give the file with its configuration."),
        (b"\xff", "switch leaf1: PATH is no text: give the configuration as the switch prints it."),
        (
            EOS.encode(),
            "switch leaf1: no port of it is given and no host is plugged into it by that name: "
            "give its ports, or the neighbours of its hosts.",
        ),
    ],
)
def test_a_switch_that_cannot_be_judged_is_refused(
    run_module: Any, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "leaf1"
    if content is not None:
        path.write_bytes(content)
    result = run_module(gaudi_fabric_lint, switches=[{"name": "leaf1", "syntax": "eos", "path": str(path)}])
    assert result["failed"]
    assert result["msg"] == message.replace("PATH", str(path))


def test_a_switch_without_a_configuration_is_named(run_module: Any, tmp_path: Path) -> None:
    (tmp_path / "leaf2").write_text(EOS)
    switch = {"name": "leaf2", "syntax": "eos", "path": str(tmp_path / "leaf2"), "ports": ["Ethernet1/1"]}
    result = run_module(gaudi_fabric_lint, switches=[switch], neighbours=NEIGHBOURS, wanted={"mtu": 9000})
    assert [(each["switch"], each["rule"]) for each in result["findings"]] == [("leaf1", "no-switch")]
    assert (result["ok"], result["not_judged"]) == (False, ["pfc", "dscp", "ecn", "vlan"])
