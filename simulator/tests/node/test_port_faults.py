"""Faults of a card's ports, internal ones included."""

from __future__ import annotations

import itertools

import pytest
from simulated_machine import START, Machine


def link(machine: Machine, card: int, *ports: int) -> list[str]:
    """UP or DOWN of ports, of the internal ones where none is named."""
    named = ["-P", ",".join(str(port) for port in ports)] if ports else []
    lines = machine.ok("hl-smi", "-n", "link", "-i", machine.csv("bus_id")[card][0], *named).lines
    return [line.partition("\t")[2] for line in lines]


def counters(machine: Machine, card: int, port: int) -> dict[str, int]:
    lines = machine.ok("hl-smi", "-n", "stats", "-i", machine.csv("bus_id")[card][0], "-P", str(port)).lines[1:]
    return {name.strip(): int(value) for name, _, value in (line.rpartition(":") for line in lines)}


@pytest.mark.parametrize(("card", "port"), [(0, 0), (3, 23), (7, 12)])
def test_internal_port_down(machine: Machine, card: int, port: int) -> None:
    machine.ok("node", "fault", "port-down", "--card", str(card), "--port", str(port))
    assert link(machine, card, port) == ["DOWN"]
    assert sorted(link(machine, card)) == ["DOWN"] + ["UP"] * 20
    assert "DOWN" not in link(machine, (card + 1) % 8)
    state = machine.read(f"/sys/class/infiniband/hbl_{card}/ports/{port + 1}/state")
    assert state == "1: DOWN"
    machine.ok("manage_network_ifs.sh", "--up")
    assert link(machine, card, port) == ["DOWN"], "what the host does is of no use"
    machine.ok("node", "fault", "port-down", "--clear")
    assert link(machine, card, port) == ["UP"]


@pytest.mark.parametrize(("card", "port"), [(2, 5), (5, 13)])
def test_a_flapping_port_comes_and_goes(machine: Machine, card: int, port: int) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    machine.ok("node", "fault", "port-flapping", "--card", str(card), "--port", str(port))
    seen = []
    for second in range(60):
        machine.at(START + second)
        seen += link(machine, card, port)
    assert {"UP", "DOWN"} == set(seen)
    changes = sum(before != after for before, after in itertools.pairwise(seen))
    assert 5 <= changes <= 40
    assert "DOWN" not in link(machine, card, port + 1 if port == 5 else 4)
    restored = counters(machine, card, port)["pcs_link_restores"]
    machine.at(START + 600)
    assert counters(machine, card, port)["pcs_link_restores"] > restored > 0


@pytest.mark.parametrize(("card", "port"), [(1, 0), (4, 21)])
def test_symbol_errors_leave_the_link_up(machine: Machine, card: int, port: int) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    sound = counters(machine, card, port)
    machine.ok("node", "fault", "port-symbol-errors", "--card", str(card), "--port", str(port))
    bad = counters(machine, card, port)
    assert link(machine, card, port) == ["UP"]
    assert bad["pre_FEC_SER_exp (negative)"] < sound["pre_FEC_SER_exp (negative)"]
    assert bad["cw_corrected"] > sound["cw_corrected"] == 0
    assert bad["cw_uncorrect"] == 0
    assert counters(machine, card, 1) == sound
    machine.ok("node", "fault", "port-symbol-errors", "--clear")
    assert counters(machine, card, port) == sound


@pytest.mark.parametrize("port", [4, 9])
def test_a_mac_that_does_not_reset(machine: Machine, port: int) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    machine.ok("node", "fault", "mac-timeout", "--card", "6", "--port", str(port))
    line = f"habanalabs {machine.csv('bus_id')[6][0]}: Timeout while MAC channel 0 reset"
    assert machine.ok("dmesg", "-t").lines[-1] == line
    assert link(machine, 6, port) == ["DOWN"]
    machine.ok("dmesg", "-C")
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn"):
        machine.ok("modprobe", "-r", name)
    machine.ok("modprobe", "habanalabs_cn")
    assert machine.ok("dmesg", "-t").lines.count(line) == 1, "at every load of the NIC driver"


@pytest.mark.parametrize("kind", ["port-down", "port-flapping", "port-symbol-errors", "mac-timeout"])
@pytest.mark.parametrize("port", ["24", "-1"])
def test_there_are_24_ports(machine: Machine, kind: str, port: str) -> None:
    result = machine.run("node", "fault", kind, f"--port={port}")
    assert result.err == f"gaudi3-simulator-node: port {port} does not exist: a card has ports 0 to 23\n"
