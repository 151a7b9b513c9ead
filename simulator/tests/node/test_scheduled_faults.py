"""Faults that come and go by themselves, and what the tools, the kernel's files and its log then show."""

from __future__ import annotations

import json

import pytest
from simulated_machine import START, Machine

MINUTE = 60.0


def status(machine: Machine, card: int) -> str:
    return machine.read(f"/sys/class/accel/accel{card}/device/status")


def temperatures(machine: Machine) -> list[str]:
    return [cells[0] for cells in machine.csv("temperature.aip")]


def log(machine: Machine) -> list[str]:
    return machine.ok("dmesg", "-t").lines


def later(machine: Machine, seconds: float) -> None:
    """Let time pass, and the node's follower look."""
    machine.at(machine.now + seconds)
    machine.ok("node", "follow", "--once")


def test_a_fault_comes_at_its_minute(machine: Machine) -> None:
    machine.ok("node", "fault", "temperature-zero", "--card", "3", "--after", "120")
    machine.at(START + 119)
    assert temperatures(machine)[3] != "0"
    machine.at(START + 120)
    assert temperatures(machine)[3] == "0"
    assert [cell == "0" for cell in temperatures(machine)].count(True) == 1


def test_the_kernel_shows_it_when_it_comes_and_no_earlier(machine: Machine) -> None:
    machine.ok("node", "fault", "reset-failed", "--card", "5", "--after", "30")
    later(machine, 29)
    assert status(machine, 5) == "Operational"
    assert not any("heartbeat failed" in line for line in log(machine))
    for _ in range(3):
        later(machine, 5)
        assert status(machine, 5) == "Disabled"
        assert sum("heartbeat failed" in line for line in log(machine)) == 1


def test_after_the_next_boot(machine: Machine) -> None:
    machine.ok("node", "fault", "pcie-width", "--card", "2", "--at-boot")
    later(machine, 10 * MINUTE)
    assert machine.csv("pcie.link.width.current")[2] == ["x16"]
    machine.reboot()
    assert machine.csv("pcie.link.width.current")[2] == ["x8"]


def test_in_a_share_of_the_time(machine: Machine) -> None:
    machine.ok("node", "fault", "needs-reset", "--card", "1", "--share", "30")
    seen = []
    for _ in range(120):
        later(machine, 5)
        seen.append(status(machine, 1))
    assert set(seen) == {"Operational", "Needs reset"}
    assert 24 < seen.count("Needs reset") < 48


def test_while_a_process_holds_the_card(machine: Machine) -> None:
    machine.ok("node", "fault", "throttled-thermal", "--card", "4", "--under-load", "--count", "7")
    shown = machine.ok("hl-smi", "-q", "-i", machine.csv("bus_id")[4][0]).out
    machine.hold(4)
    later(machine, 1)
    assert machine.ok("hl-smi", "-q", "-i", machine.csv("bus_id")[4][0]).out != shown


def test_a_fault_without_a_schedule_takes_the_place_of_one_with(machine: Machine) -> None:
    machine.ok("node", "fault", "temperature-zero", "--card", "3", "--after", "120")
    machine.ok("node", "fault", "temperature-zero", "--card", "3")
    assert temperatures(machine)[3] == "0"
    assert len(machine.state()["faults"]) == 1


def test_faults_combine(machine: Machine) -> None:
    machine.ok("node", "fault", "temperature-zero", "--card", "3", "--after", "60")
    machine.ok("node", "fault", "pcie-width", "--card", "3")
    machine.ok("node", "fault", "ecc-corrected", "--card", "6", "--after", "90", "--count", "12")
    later(machine, 60)
    assert (temperatures(machine)[3], machine.csv("pcie.link.width.current")[3]) == ("0", ["x8"])
    field = "ecc.errors.corrected.volatile.total"
    assert machine.csv(field)[6] == ["0"]
    later(machine, 30)
    assert machine.csv(field)[6] == ["12"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["driver-not-loaded", "--after", "5"], "driver-not-loaded is a fault of one moment: leave out --after,"),
        (["card-in-reset", "--after", "-1"], "--after was -1: give seconds from now on, 0 or more"),
        (
            ["card-in-reset", "--share", "100"],
            "--share was 100: give the percentage of the time with the fault",
        ),
        (
            ["card-in-reset", "--event", "X"],
            "X is no event of card-in-reset: --event is a name",
        ),
    ],
)
def test_what_cannot_be_scheduled_is_refused(machine: Machine, arguments: list[str], message: str) -> None:
    result = machine.run("node", "fault", *arguments)
    assert result.code == 1
    assert result.err.startswith(f"gaudi3-simulator-node: {message}")
    assert machine.state()["faults"] == []


def test_events_of_the_driver_by_name(machine: Machine) -> None:
    address = machine.csv("bus_id")[2][0]
    machine.ok("node", "fault", "kernel-event", "--card", "2")
    machine.ok("node", "fault", "kernel-event", "--card", "2", "--event", "NIC0_DIE0_SEI")
    assert log(machine)[-2:] == [
        f'habanalabs {address}: Received H/W interrupt 0 ["MME0_DIE0_HD0_DERR"]',
        f'habanalabs {address}: Received H/W interrupt 0 ["NIC0_DIE0_SEI"]',
    ]


def test_the_firmware_of_one_card_is_older(machine: Machine) -> None:
    machine.ok("node", "fault", "firmware-skew", "--card", "6")
    versions = [machine.read(f"/sys/class/accel/accel{card}/device/cpucp_ver") for card in range(8)]
    assert [version == versions[0] for version in versions] == [True] * 6 + [False, True]
    shown = machine.ok("hl-smi", "-q", "-i", machine.csv("bus_id")[6][0]).out
    assert f"Zephyr 2.7.2-{versions[6]}" in shown
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("modprobe", "-r", name)
    machine.load()
    assert machine.read("/sys/class/accel/accel6/device/cpucp_ver") == versions[0]


def test_one_ports_mtu_is_another(machine: Machine) -> None:
    machine.ok("node", "fault", "port-mtu", "--card", "0", "--port", "13")
    names = machine.names("/sys/class/net")
    mtus = {name: machine.read(f"/sys/class/net/{name}/mtu") for name in names if "d" in name}
    assert sorted(mtus.values()) == ["1500"] * 23 + ["9000"]


def test_flow_control_of_one_card_stays_disabled(machine: Machine) -> None:
    machine.ok("node", "fault", "port-pfc", "--card", "3")
    machine.ok("manage_network_ifs.sh", "--set-pfc")
    lines = machine.ok("manage_network_ifs.sh", "--check-pfc").lines
    states = [line.split(" (")[0] for line in lines if line.startswith("pfc")]
    assert states.count("pfc disabled") == 1
    assert lines[lines.index("accel3") + 1].startswith("pfc disabled")


@pytest.mark.parametrize("before", [None, '{"NIC_NET_CONFIG": []}\n'])
def test_the_file_of_the_ports_addresses(machine: Machine, before: str | None) -> None:
    path = "/etc/habanalabs/gaudinet.json"
    if before is not None:
        machine.write(path, before)
    machine.ok("node", "fault", "gaudinet-empty")
    assert machine.path(path).read_text() == ""
    machine.ok("node", "fault", "gaudinet-empty", "--clear")
    assert (machine.path(path).read_text() if machine.path(path).exists() else None) == before
    machine.ok("node", "fault", "gaudinet-wrong")
    entries = json.loads(machine.path(path).read_text())["NIC_NET_CONFIG"]
    own = {machine.read(f"/sys/class/net/{name}/address") for name in machine.names("/sys/class/net") if "d" in name}
    assert len(entries) == 24
    assert not own & {entry["NIC_MAC"] for entry in entries}
    machine.write(path, "mended\n")
    assert "gaudinet-wrong" not in machine.ok("node", "status").out
    machine.ok("node", "fault", "--clear-all")
    assert machine.path(path).read_text() == "mended\n"
