"""Faults of a card's condition: each shows where a driver or hl-smi shows it, and its remedy ends it."""

from __future__ import annotations

import re

import pytest
from simulated_machine import Machine

NIC_MODULES = ("habanalabs_ib", "habanalabs_en", "habanalabs_cn")


def column(machine: Machine, field: str) -> list[str]:
    return [cells[0] for cells in machine.csv(field)]


def bus(machine: Machine, card: int) -> str:
    return machine.csv("bus_id")[card][0]


def log(machine: Machine) -> list[str]:
    return machine.ok("dmesg", "-t").lines


def status(machine: Machine, card: int) -> str:
    return machine.read(f"/sys/class/accel/accel{card}/device/status")


def reload(machine: Machine) -> None:
    """Take the driver out and load it again."""
    for name in (*NIC_MODULES, "habanalabs"):
        machine.ok("modprobe", "-r", name)
    machine.load()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("needs-reset", "Needs reset"),
        ("in-device-creation", "In device creation"),
        ("reset-failed", "Disabled"),
        ("cpu-timeout", "Disabled"),
    ],
)
@pytest.mark.parametrize("card", [1, 6])
def test_the_status_is_the_drivers_word(machine: Machine, kind: str, text: str, card: int) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    machine.ok("node", "fault", kind, "--card", str(card))
    assert [status(machine, each) for each in range(8)] == [
        text if each == card else "Operational" for each in range(8)
    ]
    assert f"Module status                   : {text}" in machine.ok("hl-smi", "-L", "-i", bus(machine, card)).out
    assert "UP" not in machine.ok("hl-smi", "-n", "link", "-i", bus(machine, card)).out
    assert not machine.path(f"/sys/class/accel/accel{card}/device/max_power").exists()
    machine.ok("node", "fault", kind, "--card", str(card), "--clear")
    assert status(machine, card) == "Operational"


@pytest.mark.parametrize("kind", ["reset-failed", "cpu-timeout"])
def test_a_disabled_card_has_no_readings(machine: Machine, kind: str) -> None:
    machine.ok("node", "fault", kind, "--card", "3")
    cells = machine.csv("index,temperature.aip,memory.used,memory.total,power.draw")
    assert cells[3] == ["3", "N/A C", "N/A MiB", "N/A MiB", "N/A W"]
    assert "N/A" not in " ".join(cells[2])


@pytest.mark.parametrize("kind", ["needs-reset", "memory-kept", "row-pending"])
def test_a_reset_ends_what_a_reset_ends(machine: Machine, kind: str) -> None:
    machine.ok("node", "fault", kind, "--card", "2")
    machine.ok("node", "fault", kind, "--card", "5")
    machine.ok("hl-smi", "-r", "-i", bus(machine, 2))
    assert [fault["card"] for fault in machine.state()["faults"]] == [5]


@pytest.mark.parametrize("kind", ["needs-reset", "reset-failed", "in-device-creation", "memory-kept", "row-pending"])
def test_a_reload_of_the_driver_ends_it(machine: Machine, kind: str) -> None:
    machine.ok("node", "fault", kind, "--card", "4")
    reload(machine)
    assert machine.state()["faults"] == []
    assert status(machine, 4) == "Operational"


def test_a_failed_reset_fails_again(machine: Machine) -> None:
    machine.ok("node", "fault", "reset-failed", "--card", "7")
    address = bus(machine, 7)
    name = f"habanalabs {address}:"
    expected = [
        f"{name} Device heartbeat failed! PCI link is healthy",
        f"{name} Going to reset device",
        f"{name} {address} Failed to reset! Device is NOT usable",
    ]
    assert log(machine)[-3:] == expected
    result = machine.run("hl-smi", "-r", "-i", address)
    assert result.code == 1
    assert result.err == f"hl-smi: the card at '{address}' could not be reset: reload the driver\n"
    assert log(machine)[-2:] == expected[1:]
    assert status(machine, 7) == "Disabled"
    assert machine.read("/sys/class/accel/accel7/device/hard_reset_cnt") == "1"


def test_a_card_whose_processor_does_not_answer_fails_at_every_load(machine: Machine) -> None:
    machine.ok("node", "fault", "cpu-timeout", "--card", "0")
    for _ in range(2):
        address = bus(machine, 0)
        assert [line for line in log(machine) if line.startswith((f"habanalabs {address}: ", "habanalabs: F"))][
            -4:
        ] == [
            f"habanalabs {address}: Failed to communicate with Device CPU (CPU-CP timeout)",
            f"habanalabs {address}: failed to initialize CPU H/W queues -5",
            f"habanalabs {address}: failed to initialize the H/W",
            f"habanalabs: Failed to initialize accel0. Device {address} is NOT usable!",
        ]
        machine.ok("dmesg", "-C")
        reload(machine)
    assert not any(f"added device {bus(machine, 0)}" in line for line in log(machine))
    assert sum("added device" in line for line in log(machine)) == 7
    assert status(machine, 0) == "Disabled"
    assert machine.run("hl-smi", "-r", "-i", bus(machine, 0)).code == 1


def test_absurd_temperature_of_one_card(machine: Machine) -> None:
    machine.ok("node", "fault", "temperature-absurd", "--card", "3")
    assert [cell == "505712272" for cell in column(machine, "temperature.aip")] == [card == 3 for card in range(8)]
    assert "505712272C" in machine.ok("hl-smi").out
    assert machine.read("/sys/class/accel/accel3/device/hwmon/hwmon4/temp1_input") == "505712272000"


@pytest.mark.parametrize("card", [0, 6])
def test_slow_generation_is_seen_in_all_three_places(machine: Machine, card: int) -> None:
    machine.ok("node", "fault", "pcie-generation", "--card", str(card))
    slow = [each == card for each in range(8)]
    assert column(machine, "pcie.link.gen.current") == ["Gen3" if each else "Gen5" for each in slow]
    assert column(machine, "pcie.link.speed.current") == ["8GT/s" if each else "32GT/s" for each in slow]
    address = bus(machine, card)
    assert machine.read(f"/sys/bus/pci/devices/{address}/current_link_speed") == "8.0 GT/s PCIe"
    assert machine.read(f"/sys/bus/pci/devices/{address}/max_link_speed") == "32.0 GT/s PCIe"
    assert re.search(r"LnkSta:\s+Speed 8GT/s \(downgraded\), Width x16", machine.lspci("-s", address, "-vv"))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("ecc-corrected", "ecc.errors.corrected.volatile.total"),
        ("ecc-uncorrected", "ecc.errors.uncorrected.volatile.total"),
        ("throttled-power", "stats.violation.power"),
        ("throttled-thermal", "stats.violation.thermal"),
    ],
)
def test_counted_faults_take_a_count(machine: Machine, kind: str, field: str) -> None:
    machine.ok("node", "fault", kind, "--card", "2", "--count", "4711")
    assert column(machine, field) == ["0", "0", "4711", "0", "0", "0", "0", "0"]
    machine.ok("node", "fault", kind, "--card", "2", "--count", "5000")
    assert column(machine, field)[2] == "5000", "the new count takes the place of the old one"
    machine.ok("node", "fault", kind, "--card", "2", "--clear")
    assert set(column(machine, field)) == {"0"}


def test_thousands_of_errors_stand_in_the_table(machine: Machine) -> None:
    machine.ok("node", "fault", "ecc-uncorrected", "--card", "0", "--count", "12345")
    (row,) = [line for line in machine.ok("hl-smi").lines if line.startswith("|   0  HL-")]
    assert row.endswith("|               12345  |")
    assert "Pending                 : Yes" in machine.ok("hl-smi", "-L", "-i", bus(machine, 0)).out


@pytest.mark.parametrize(
    ("kind", "line"),
    [("throttled-thermal", "Thermal Slowdown"), ("throttled-power", "Power Slowdown")],
)
def test_throttling_stands_in_the_log(machine: Machine, kind: str, line: str) -> None:
    machine.ok("node", "fault", kind, "--card", "1")
    lines = machine.ok("hl-smi", "-L", "-i", bus(machine, 1)).lines
    place = next(number for number, each in enumerate(lines) if each.strip() == line)
    assert lines[place + 1].endswith(": Active")


def test_rows_wait_for_their_replacement(machine: Machine) -> None:
    machine.ok("node", "fault", "row-pending", "--card", "1")
    said = [machine.ok("hl-smi", "-q", "-d", "ROW_REPLACEMENT", "-i", bus(machine, card)).out for card in (0, 1)]
    assert ["Pending                 : Yes" in text for text in said] == [False, True]


@pytest.mark.parametrize("card", [2, 5])
def test_memory_stays_in_use_without_a_process(machine: Machine, card: int) -> None:
    machine.ok("node", "fault", "memory-kept", "--card", str(card))
    used = [int(cell) for cell in column(machine, "memory.used")]
    assert used[card] == used[0] + 40960
    assert f"|{card:4d}        N/A   N/A    N/A" in machine.ok("hl-smi").out
    machine.hold(card, mib=200_000)
    assert column(machine, "memory.used")[card] == column(machine, "memory.total")[card]


@pytest.mark.parametrize("spi", ["1.21.1-16", "1.23.0-695"])
def test_preboot_of_another_release(machine: Machine, spi: str) -> None:
    from gaudi3_simulator.node import releases

    machine.ok("node", "init", "--node", "gaudi-1", "--spi-release", spi, "--force")
    machine.ok("node", "fault", "spi-release", "--card", "4")
    others = releases.preboot(spi, "gaudi3")
    older = releases.preboot(releases.previous(spi.partition("-")[0]), "gaudi3")
    shown = [machine.read(f"/sys/class/accel/accel{card}/device/preboot_btl_ver") for card in range(8)]
    assert shown == [f"Preboot version {older if card == 4 else others}" for card in range(8)]
    assert machine.ok("hl-smi", "-L").out.count(f"[SPI] Version          : Preboot version {older} ") == 1
    for name in (*NIC_MODULES, "habanalabs"):
        machine.ok("modprobe", "-r", name)
    machine.ok("hl-fw-loader", "-y", "-d", machine.state()["cards"][4]["bus_id"])
    assert machine.state()["faults"] == []
