"""External ports: which, down after each load, up on request; internal ports follow the driver."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulated_machine import Machine

EVERY_PORT = ",".join(str(port) for port in range(24))


def external(machine: Machine) -> list[int]:
    bus_id = machine.csv("bus_id")[0][0]
    lines = machine.ok("hl-smi", "-n", "ports", "-i", bus_id).lines
    return [int(line.split()[1].rstrip(":")) for line in lines if line.endswith(": external")]


def links(machine: Machine, card: int = 0) -> dict[int, str]:
    bus_id = machine.csv("bus_id")[card][0]
    lines = machine.ok("hl-smi", "-n", "link", "-i", bus_id, "-P", EVERY_PORT).lines
    return {int(line[5:7]): line.split("\t")[1] for line in lines}


def test_external_ports_are_not_those_of_the_older_generation(machine: Machine) -> None:
    assert len(external(machine)) == 3
    assert external(machine) != [8, 22, 23]


def test_external_ports_are_down_after_a_load_and_internal_ones_up(machine: Machine) -> None:
    outside = external(machine)
    assert [port for port, link in links(machine).items() if link == "DOWN"] == outside
    machine.ok("manage_network_ifs.sh", "--up", "--no-progbar")
    assert set(links(machine).values()) == {"UP"}
    for name in ("ib", "en", "cn"):
        machine.ok("modprobe", "-r", f"habanalabs_{name}")
    machine.ok("modprobe", "-r", "habanalabs")
    machine.load()
    assert [port for port, link in links(machine).items() if link == "DOWN"] == outside


def test_link_view_has_the_documented_form(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[0][0]
    machine.ok("manage_network_ifs.sh", "--up")
    down, inside = external(machine)[0], 0
    machine.ok("node", "fault", "port-down", "--card", "0", "--port", str(down))
    text = machine.ok("hl-smi", "-n", "link", "-i", bus_id, "-P", f"{inside},{down}").out
    assert text == f"port {inside:2d}:\tUP\nport {down:2d}:\tDOWN\n"
    without_ports = machine.ok("hl-smi", "-n", "link", "-i", bus_id).lines
    assert [int(line[5:7]) for line in without_ports] == [p for p in range(24) if p not in external(machine)]


def test_counters_are_indented_under_their_port(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[0][0]
    lines = machine.ok("hl-smi", "-n", "stats", "-i", bus_id, "-P", "0").lines
    assert lines[:3] == ["port 0:", "\tpcs_local_faults: 0", "\tpcs_remote_faults: 0"]
    assert all(line.startswith("\t") for line in lines[1:])


def test_status_names_ports_up_and_down(machine: Machine) -> None:
    a, b, c = external(machine)
    assert machine.ok("manage_network_ifs.sh", "--status").lines[:2] == ["accel0", f"3 ports down ({a}, {b}, {c})"]
    shown = machine.ok("manage_network_ifs.sh", "--up", "--no-progbar").lines
    assert shown == [line for card in range(8) for line in (f"accel{card}", f"3 ports up ({a}, {b}, {c})")]
    machine.ok("node", "fault", "port-down", "--card", "1", "--port", str(b))
    machine.ok("node", "fault", "card-in-reset", "--card", "2")
    machine.ok("node", "fault", "card-missing", "--card", "3")
    assert machine.ok("manage_network_ifs.sh", "--status").lines[2:7] == [
        "accel1",
        f"2 ports up ({a}, {c})",
        f"1 ports down ({b})",
        "accel2 is not operational",
        "accel3 doesn't exist",
    ]


def test_netdevs_follow_the_ports(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[0][0]
    folder = f"/sys/bus/pci/devices/{bus_id}/net"
    netdevs = machine.names(folder)
    assert sorted(int(machine.read(f"{folder}/{name}/dev_port")) for name in netdevs) == external(machine)
    assert {machine.read(f"{folder}/{name}/operstate") for name in netdevs} == {"down"}
    machine.ok("manage_network_ifs.sh", "--up")
    assert {machine.read(f"{folder}/{name}/operstate") for name in netdevs} == {"up"}
    assert machine.read(f"/sys/class/infiniband/hbl_0/ports/{external(machine)[0] + 1}/state") == "4: ACTIVE"


def test_flow_control_is_set_shown_and_taken_back(machine: Machine) -> None:
    assert machine.ok("manage_network_ifs.sh", "--check-pfc").lines[1].startswith("pfc disabled ")
    machine.ok("manage_network_ifs.sh", "--set-pfc")
    assert (
        machine.ok("manage_network_ifs.sh", "--check-pfc").lines[1].startswith("pfc enabled on priorities 0, 1, 2, 3 ")
    )
    machine.ok("manage_network_ifs.sh", "--unset-pfc")
    assert machine.ok("manage_network_ifs.sh", "--check-pfc").lines[1].startswith("pfc disabled ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--up", "--down"), "2 operations given: give one of --up,"),
        (("--no-progbar",), "0 operations given: give one of --up,"),
        (("--gaudi2", "--up"), "unknown option '--gaudi2': see manage_network_ifs.sh -h"),
    ],
)
def test_wrong_usage_is_told(machine: Machine, arguments: tuple[str, ...], message: str) -> None:
    result = machine.run("manage_network_ifs.sh", *arguments)
    assert result.code == 1
    assert result.err.startswith(f"manage_network_ifs.sh: {message}")


def test_root_is_needed(machine: Machine) -> None:
    machine.as_user(1000)
    result = machine.run("manage_network_ifs.sh", "--up")
    assert (result.code, result.err) == (1, "manage_network_ifs.sh: this needs root: run it with sudo\n")


def test_the_driver_is_needed(bare: Callable[..., Machine]) -> None:
    result = bare().run("manage_network_ifs.sh", "--up")
    assert (result.code, result.out) == (1, "Warning: no habanalabs network interfaces were detected\n")
