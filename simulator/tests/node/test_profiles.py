"""Boards and the places that they stand in: which are simulated, and what a machine without cables or ports shows."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import board, releases

NONE_DETECTED = "Warning: no habanalabs network interfaces were detected\n"


def ready(bare: Callable[..., Machine], profile: str, cards: int = 8, kind: str = board.DEFAULT_BOARD) -> Machine:
    machine = bare("gaudi-7", cards, profile=profile, board=kind)
    machine.install()
    machine.load()
    return machine


@pytest.mark.parametrize(("option", "value"), [("board", "HL-338"), ("board", "hl-325l"), ("profile", "laptop")])
def test_others_are_refused_by_name(bare: Callable[..., Machine], option: str, value: str) -> None:
    machine = bare()
    result = machine.run("node", "init", "--node", "x", "--force", f"--{option}", value)
    known = ", ".join(board.BOARDS if option == "board" else board.PROFILES)
    assert result.err == f"gaudi3-simulator-node: {option} {value} is not simulated: choose one of {known}\n"


def test_a_board_is_told_and_kept(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 8, board="HL-225", profile="single")
    machine.reboot()
    status = json.loads(machine.ok("node", "status").out)
    assert (status["board"], status["profile"]) == ("HL-225", "single")
    assert all(card["serial"].startswith("AM") and card["ports_down"] == [8, 22, 23] for card in status["cards"])
    assert {machine.read(f"/sys/bus/pci/devices/{card['bus_id']}/max_link_speed") for card in status["cards"]} == {
        "16.0 GT/s PCIe"
    }


@pytest.mark.parametrize("cards", [2, 8])
def test_ports_without_cables_stay_down(bare: Callable[..., Machine], cards: int) -> None:
    machine = ready(bare, "single", cards)
    machine.ok("manage_network_ifs.sh", "--up")
    ports = machine.names("/sys/class/net")
    assert len(ports) == 3 * cards
    # Brought up on this side: the flag says so, the carrier does not come.
    shown = {
        tuple(machine.read(f"/sys/class/net/{port}/{name}") for name in ("flags", "operstate", "carrier"))
        for port in ports
    }
    assert shown == {("0x1003", "down", "0")}
    assert machine.ok("manage_network_ifs.sh", "--status").out.count("3 ports down (4, 13, 21)") == cards


@pytest.mark.parametrize("operation", ["--up", "--down", "--set-pfc", "--unset-pfc", "--check-pfc"])
def test_without_port_devices_the_script_fails(bare: Callable[..., Machine], operation: str) -> None:
    machine = ready(bare, "vm", 4)
    assert machine.names("/sys/class/net") == []
    assert not any(machine.names(f"/sys/bus/pci/devices/{name}/net") for name in machine.names("/sys/bus/pci/devices"))
    result = machine.run("manage_network_ifs.sh", operation)
    assert (result.code, result.out) == (1, NONE_DETECTED)


def test_without_port_devices_the_status_says_so(bare: Callable[..., Machine]) -> None:
    machine = ready(bare, "vm", 2)
    shown = machine.ok("manage_network_ifs.sh", "--status").lines
    assert shown == ["accel0", "no interfaces were detected", "accel1", "no interfaces were detected"]


def test_without_the_driver_there_is_no_port_device_either(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 3)
    assert machine.ok("manage_network_ifs.sh", "--status").lines == [
        f"accel{index} doesn't exist" for index in range(3)
    ]
    assert machine.run("manage_network_ifs.sh", "--up").out == NONE_DETECTED


def test_a_gaudi_2_needs_the_firmware_of_a_gaudi_2(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 2, board="HL-225")
    machine.install(firmware=False)
    for path, text in releases.firmware_files("1.23.0-695").items():
        if "gaudi3/" in path:
            machine.write(path, text)
    machine.load()
    assert machine.names("/dev/accel") == []
    machine.install()
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("modprobe", "-r", name)
    machine.load()
    assert machine.read("/sys/class/accel/accel1/device/device_type") == "GAUDI2"
    assert machine.csv("name,memory.total,memory.used") == [["HL-225", "98304", "768"]] * 2
    machine.ok("manage_network_ifs.sh", "--up")
    assert machine.ok("manage_network_ifs.sh", "--status").lines[1] == "3 ports up (8, 22, 23)"
    assert machine.read("/sys/class/net/" + machine.names("/sys/class/net")[0] + "/speed") == "100000"
