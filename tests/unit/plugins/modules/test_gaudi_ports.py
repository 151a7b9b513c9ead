"""gaudi_ports: what it asks, when it acts, and what it says of ports that stay down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_ports

CARDS = ["-Q", "index,bus_id", "-f", "csv,noheader,nounits"]
BUS_IDS = ("0000:19:00.0", "0000:b3:00.0")


def ports_of(bus_id: str) -> list[str]:
    return ["-n", "ports", "-i", bus_id]


def link_of(bus_id: str) -> list[str]:
    return ["-n", "link", "-i", bus_id, "-P", "1,11,23"]


def links(*down: int) -> str:
    return "".join(f"port {port:2}:\t{'DOWN' if port in down else 'UP'}\n" for port in (1, 11, 23))


@pytest.fixture
def host(tool: Any, samples: Any, tmp_path: Path) -> dict[str, Any]:
    """Options for two cards."""
    tool.answer(CARDS, "0, 0000:19:00.0\n1, 0000:b3:00.0\n")
    for bus_id in BUS_IDS:
        tool.answer(ports_of(bus_id), samples.ports)
        tool.answer(link_of(bus_id), links())
    return {"executable": str(tool.path), "script": str(tmp_path / "manage_network_ifs.sh"), "wait": 0}


def script(tmp_path: Path, tool: Any, body: str = "") -> Path:
    """The vendor's script; it says what it was called with and does what ``body`` does."""
    path = tmp_path / "manage_network_ifs.sh"
    path.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/script-calls\n{body}\n')
    path.chmod(0o755)
    return path


def brings_up(tmp_path: Path, tool: Any, *still_down: int) -> None:
    """A script after which the first card's links are up, except for some."""
    prepared = tmp_path / "prepared"
    prepared.write_text(links(*still_down))
    case = tool.case(link_of(BUS_IDS[0])) / "output"
    script(tmp_path, tool, f"cp {prepared} {case}")


def script_calls(tmp_path: Path) -> list[str]:
    log = tmp_path / "script-calls"
    return log.read_text().splitlines() if log.exists() else []


def test_nothing_is_done_when_all_are_up(host: Any, tool: Any, tmp_path: Path, run_module: Any) -> None:
    script(tmp_path, tool)
    result = run_module(gaudi_ports, **host)
    assert {key: result[key] for key in ("changed", "external", "down", "brought_up")} == {
        "changed": False,
        "external": 6,
        "down": [],
        "brought_up": [],
    }
    assert tool.calls() == [
        CARDS,
        ports_of(BUS_IDS[0]),
        ports_of(BUS_IDS[1]),
        link_of(BUS_IDS[0]),
        link_of(BUS_IDS[1]),
    ]
    assert script_calls(tmp_path) == []


def test_a_port_that_is_down_is_brought_up(host: Any, tool: Any, tmp_path: Path, run_module: Any) -> None:
    tool.answer(link_of(BUS_IDS[0]), links(1, 23))
    brings_up(tmp_path, tool)
    predicted = run_module(gaudi_ports, check=True, **host)
    assert script_calls(tmp_path) == []
    result = run_module(gaudi_ports, **host)
    assert script_calls(tmp_path) == ["--up"]
    names = ["card 0 (0000:19:00.0) port 1", "card 0 (0000:19:00.0) port 23"]
    assert (predicted["changed"], predicted["brought_up"], predicted["down"]) == (True, names, names)
    assert (result["changed"], result["brought_up"], result["down"]) == (True, names, [])
    assert run_module(gaudi_ports, **host)["changed"] is False


def test_a_port_that_stays_down_is_named(host: Any, tool: Any, tmp_path: Path, run_module: Any) -> None:
    tool.answer(link_of(BUS_IDS[0]), links(1, 23))
    brings_up(tmp_path, tool, 23)
    result = run_module(gaudi_ports, **host)
    assert result["failed"] is True
    assert result["msg"] == (
        "1 of 6 external ports stayed down after 0 seconds: card 0 (0000:19:00.0) port 23; check cables and switch "
        "ports, and see 'hl-smi -n stats' for faults."
    )
    assert result["brought_up"] == ["card 0 (0000:19:00.0) port 1"]


def test_reported_only_tells(host: Any, tool: Any, tmp_path: Path, run_module: Any) -> None:
    tool.answer(link_of(BUS_IDS[1]), links(11))
    script(tmp_path, tool)
    result = run_module(gaudi_ports, state="reported", **host)
    assert (result["changed"], result["down"]) == (False, ["card 1 (0000:b3:00.0) port 11"])
    assert script_calls(tmp_path) == []


def test_internal_ports_are_no_concern(host: Any, tool: Any, run_module: Any) -> None:
    for bus_id in BUS_IDS:
        tool.answer(ports_of(bus_id), "port 0: internal\nport 1: internal\n")
    result = run_module(gaudi_ports, **host)
    assert (result["changed"], result["external"]) == (False, 0)


def test_a_missing_script_names_its_package(host: Any, tool: Any, run_module: Any) -> None:
    tool.answer(link_of(BUS_IDS[0]), links(1))
    result = run_module(gaudi_ports, **host)
    assert result["failed"] is True
    assert result["msg"] == (
        f"{host['script']} is not on this host: install package habanalabs-qual (role gaudi3.scale.synapseai does), "
        "or give its path as 'script'."
    )


def test_a_failing_script_is_quoted(host: Any, tool: Any, tmp_path: Path, run_module: Any) -> None:
    tool.answer(link_of(BUS_IDS[0]), links(1))
    script(tmp_path, tool, "echo 'ethtool: command not found' >&2; exit 127")
    result = run_module(gaudi_ports, **host)
    assert result["msg"] == (
        "manage_network_ifs.sh --up ended with exit code 127 and said 'ethtool: command not found'."
    )


def test_before_the_driver_is_there_check_mode_predicts_nothing(tmp_path: Path, run_module: Any) -> None:
    absent = {"executable": str(tmp_path / "hl-smi")}
    predicted = run_module(gaudi_ports, check=True, **absent)
    assert (predicted["changed"], predicted.get("failed", False)) == (False, False)
    assert predicted["msg"].startswith("No port can be looked at yet: ")
    assert run_module(gaudi_ports, **absent)["failed"] is True


def test_many_names_are_cut_short() -> None:
    from ansible_collections.gaudi3.scale.plugins.module_utils._printable import few

    assert few(["a", "b"], most=2) == "a, b"
    assert few(["a", "b", "c", "d"], most=2) == "a, b and 2 more"


def test_waiting_ends_when_links_are_up() -> None:
    from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import Port
    from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.ports import CardPorts, wait_up

    class Tool:
        answers = iter(["down", "down", "up"])

        def links(self, bus_id: str, ports: list[Port]) -> list[Port]:
            return [Port(1, "external", next(self.answers))]

    slept: list[float] = []
    cards = [CardPorts(0, BUS_IDS[0], [Port(1, "external", "down")])]
    assert wait_up(Tool(), cards, 60, slept.append) == []  # type: ignore[arg-type]
    assert slept == [1, 1]
