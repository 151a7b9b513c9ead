"""What the kernel shows of the cards: PCI, sysfs attributes, device files, card files, IOMMU groups."""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import tree

PCI = "/sys/bus/pci/devices"


def bus_ids(machine: Machine) -> list[str]:
    return machine.names(PCI)


@pytest.mark.parametrize(("board", "device", "speed"), [("HL-325L", "1060", "32GT/s"), ("HL-225", "1020", "16GT/s")])
def test_the_real_lspci_reads_the_cards(bare: Callable[..., Machine], board: str, device: str, speed: str) -> None:
    machine = bare("gaudi-2", 5, board=board)
    assert len(machine.lspci().splitlines()) == 5
    numeric = machine.lspci("-n").splitlines()
    assert [line.split()[1:] for line in numeric] == [["1200:", f"1da3:{device}", "(rev", "01)"]] * 5
    assert machine.lspci("-n", "-d", "1da3:") == machine.lspci("-n")
    assert machine.lspci("-d", "10de:") == ""
    detailed = machine.lspci("-vvv")
    assert len(re.findall(rf"LnkCap:\s+Port #0, Speed {speed}, Width x16", detailed)) == 5
    assert len(re.findall(rf"LnkSta:\s+Speed {speed}[^,]*, Width x16", detailed)) == 5
    assert "Kernel driver in use" not in detailed


def test_lspci_shows_the_driver_and_a_narrow_link(machine: Machine) -> None:
    machine.ok("node", "fault", "pcie-width", "--card", "3")
    narrow = machine.csv("bus_id")[3][0]
    shown = machine.lspci("-vvv", "-s", narrow)
    assert re.search(r"LnkSta:\s+Speed 32GT/s[^,]*, Width x8 \(downgraded\)", shown)
    assert "(downgraded)" not in machine.lspci("-vvv", "-s", machine.csv("bus_id")[2][0])
    assert machine.lspci("-k").count("Kernel driver in use: habanalabs\n") == 8
    machine.ok("node", "fault", "card-missing", "--card", "3")
    assert len(machine.lspci("-n").splitlines()) == 7


@pytest.mark.parametrize("cards", [1, 8])
def test_every_attribute_can_be_read(bare: Callable[..., Machine], cards: int) -> None:
    machine = bare("gaudi-1", cards)
    machine.install()
    machine.load()
    for name in bus_ids(machine):
        names = set(machine.names(f"{PCI}/{name}"))
        wanted = "config resource irq modalias local_cpulist local_cpus iommu_group driver hwmon net"
        attributes = "cpucp_kernel_ver fuse_ver thermal_ver vrm_ver hard_reset eeprom status module_id clk_cur_freq_mhz"
        assert names >= {*wanted.split(), *attributes.split()}
        # The public driver source gives these two only to cards for inference.
        assert not names & {"soft_reset", "soft_reset_cnt"}
        assert len(machine.path(f"{PCI}/{name}/config").read_bytes()) == 256
        assert len(machine.read(f"{PCI}/{name}/resource").splitlines()) == 13
        assert stat.S_IMODE(machine.path(f"{PCI}/{name}/hard_reset").stat().st_mode) == 0o200
    for index in range(cards):
        assert machine.read(f"/sys/class/accel/accel{index}/dev") == f"261:{index}"
        link = machine.path(f"/sys/class/accel/accel{index}/device")
        assert (link / "pci_addr").read_text().strip() == link.resolve().name


@pytest.mark.parametrize("cpus", [1, 2, 32, 160])
def test_each_card_names_the_processors_of_its_socket(
    bare: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    machine = bare()
    lists = {
        machine.read(f"{PCI}/{name}/numa_node"): machine.read(f"{PCI}/{name}/local_cpulist")
        for name in bus_ids(machine)
    }
    half = cpus // 2
    last = {1: "0", 2: "1"}.get(cpus, f"{half}-{cpus - 1}")
    assert lists == {"0": "0" if half < 2 else f"0-{half - 1}", "1": last}
    for name in bus_ids(machine):
        text = machine.read(f"{PCI}/{name}/local_cpulist")
        low, _, high = text.partition("-")
        mask = int(machine.read(f"{PCI}/{name}/local_cpus").replace(",", ""), 16)
        assert [bit for bit in range(cpus) if mask >> bit & 1] == list(range(int(low), int(high or low) + 1))


def test_a_card_in_reset_gives_no_readings(machine: Machine) -> None:
    machine.ok("node", "fault", "card-in-reset", "--card", "6")
    folder = machine.path("/sys/class/accel/accel6/device")
    assert (folder / "status").read_text() == "In reset\n"
    for name in ("clk_cur_freq_mhz", "max_power", "eeprom"):
        assert not (folder / name).exists(), f"{name} answers ENODEV on hardware"
    machine.ok("node", "fault", "card-in-reset", "--clear")
    assert (folder / "max_power").read_text() == "850000\n"


def test_sensors_are_where_hwmon_looks(machine: Machine) -> None:
    machine.ok("node", "fault", "temperature-zero", "--card", "2")
    found = {}
    for name in machine.names("/sys/class/hwmon"):
        sensor = machine.path(f"/sys/class/hwmon/{name}")
        assert (sensor / "name").read_text().strip()
        found[(sensor / "device").resolve().name] = int((sensor / "temp1_input").read_text())
    assert sorted(found) == bus_ids(machine)
    assert found[machine.csv("bus_id")[2][0]] == 0
    assert sorted(found.values())[1] > 20_000


def test_device_files_have_numbers_of_their_own_kind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: dict[str, tuple[int, int]] = {}

    def mknod(path: str, mode: int, device: int) -> None:
        assert stat.S_ISCHR(mode)
        made[Path(path).name] = (os.major(device), os.minor(device))
        Path(path).touch()

    monkeypatch.setattr(os, "mknod", mknod)
    monkeypatch.setattr(tree, "nothing_is_real", lambda: False)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    for entry in (tree.Device(), tree.Device("render", 0o660)):
        tree.make({f"/dev/accel/x{entry.mode:o}": entry})
    assert len(made) == 2
    assert (1, 3) not in made.values(), "that is /dev/null"
    for major, minor in made.values():
        with (Path("/dev") / {7: "full"}[minor]).open("r+b", buffering=0) as same:
            assert os.fstat(same.fileno()).st_rdev == os.makedev(major, minor)


def test_a_card_file_comes_and_goes_with_its_device(machine: Machine) -> None:
    cards = "/run/gaudi3-simulator/cards"
    names = [f"accel{index}" for index in range(8)]
    assert machine.names(cards) == names
    first = machine.path(f"{cards}/accel0")
    assert struct.unpack("<8Q", first.read_bytes()) == (1, 0, 0, 0, 0, 0, 0, 0)
    device = machine.path("/dev/accel/accel0").stat()
    assert (first.stat().st_mode & 0o777, first.stat().st_uid, first.stat().st_gid) == (
        device.st_mode & 0o777,
        device.st_uid,
        device.st_gid,
    )
    first.write_bytes(struct.pack("<8Q", 1, 77, 5, 6, 0, 0, 0, 0))
    machine.ok("manage_network_ifs.sh", "--up")
    assert struct.unpack("<8Q", first.read_bytes())[:4] == (1, 77, 5, 6), "what a holder wrote stays"
    machine.ok("node", "fault", "card-missing", "--card", "2")
    assert machine.names(cards) == [name for name in names if name != "accel2"]
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("modprobe", "-r", name)
    assert machine.names(cards) == []


def test_device_files_belong_to_the_group_render(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ubuntu 24.04's udev rule for the subsystem accel; the RDMA files are open to all, as the kernel makes them."""
    monkeypatch.setenv("GAUDI3_SIMULATOR_STRICTNESS", "device-files-render=on")
    machine.reboot()
    machine.load()
    for name in ("/dev/accel/accel0", "/dev/accel/accel_controlD7", "/run/gaudi3-simulator/cards/accel0"):
        assert stat.S_IMODE(machine.path(name).stat().st_mode) == 0o660, name
    assert stat.S_IMODE(machine.path("/dev/infiniband/uverbs3").stat().st_mode) == 0o666


@pytest.mark.parametrize("options", ["", "quiet", "iommu=off", "intel_iommu=on"])
def test_cards_are_behind_a_translating_iommu(machine: Machine, options: str) -> None:
    machine.write("/etc/default/grub", f'GRUB_CMDLINE_LINUX_DEFAULT="{options}"\n')
    machine.ok("update-grub")
    machine.reboot()
    groups = {name: machine.path(f"{PCI}/{name}/iommu_group") for name in bus_ids(machine)}
    assert {(group / "type").read_text() for group in groups.values()} == {"DMA-FQ\n"}
    assert len({group.resolve().name for group in groups.values()}) == 8
    assert all((group / "devices" / name).exists() for name, group in groups.items())


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="quiet iommu=pt"\n'),
        ("/etc/default/grub.d/50-gaudi.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt"\n'),
    ],
)
def test_passthrough_needs_the_kernel_s_word_and_a_reboot(machine: Machine, file: str, text: str) -> None:
    types = [f"{PCI}/{name}/iommu_group/type" for name in bus_ids(machine)]
    machine.write(file, text)
    machine.ok("update-grub")
    machine.ok("manage_network_ifs.sh", "--up")
    assert {machine.read(path) for path in types} == {"DMA-FQ"}
    machine.reboot()
    assert {machine.read(path) for path in types} == {"identity"}


def test_a_virtual_machine_has_no_iommu_group(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 8, profile="vm")
    assert not any(machine.path(f"{PCI}/{name}/iommu_group").exists() for name in bus_ids(machine))


def test_external_ports_are_network_devices(machine: Machine) -> None:
    names = machine.names("/sys/class/net")
    assert len(names) == 24
    assert {machine.read(f"/sys/class/net/{name}/device/vendor") for name in names} == {"0x1da3"}
    first = f"/sys/class/net/{names[0]}"
    assert (machine.read(f"{first}/flags"), machine.read(f"{first}/operstate")) == ("0x1002", "down")
    # Of a port that is down the kernel gives neither: EINVAL.
    assert not machine.path(f"{first}/speed").exists()
    assert not machine.path(f"{first}/carrier").exists()
    machine.ok("manage_network_ifs.sh", "--up")
    assert (machine.read(f"{first}/flags"), machine.read(f"{first}/operstate")) == ("0x1003", "up")
    assert (machine.read(f"{first}/speed"), machine.read(f"{first}/carrier")) == ("200000", "1")


def test_carriers_are_counted(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[4][0]
    (port,) = [name for name in machine.names(f"{PCI}/{bus_id}/net") if name.endswith("d13")]

    def counts() -> tuple[str, ...]:
        folder = f"{PCI}/{bus_id}/net/{port}"
        return tuple(machine.read(f"{folder}/carrier_{name}") for name in ("up_count", "down_count", "changes"))

    assert counts() == ("0", "0", "0")
    machine.ok("manage_network_ifs.sh", "--up")
    assert counts() == ("1", "0", "1")
    for step in range(1, 3):
        machine.ok("node", "fault", "port-down", "--card", "4", "--port", "13")
        assert counts() == (str(step), str(step), str(2 * step))
        assert machine.read(f"{PCI}/{bus_id}/net/{port}/speed") == "-1"
        machine.ok("node", "fault", "port-down", "--clear")
    assert counts() == ("3", "2", "5")


def test_rdma_ports_count_from_one_and_are_all_there(machine: Machine) -> None:
    ports = machine.names("/sys/class/infiniband/hbl_5/ports")
    assert sorted(int(port) for port in ports) == list(range(1, 25))
    states = {int(port): machine.read(f"/sys/class/infiniband/hbl_5/ports/{port}/state") for port in ports}
    assert [port - 1 for port, state in sorted(states.items()) if state == "1: DOWN"] == [4, 13, 21]
    assert {state for port, state in states.items() if port - 1 not in (4, 13, 21)} == {"4: ACTIVE"}


def test_nic_counters_are_torn_now_and_then(machine: Machine) -> None:
    def counters() -> dict[str, int]:
        folder = machine.path("/sys/class/infiniband")
        return {
            str(path.relative_to(folder)): int(path.read_text()) for path in folder.glob("hbl_*/ports/*/hw_counters/*")
        }

    reads = []
    for moment in range(6):
        machine.at(machine.now + 60)
        machine.ok("manage_network_ifs.sh", "--up" if moment % 2 else "--down")
        reads.append(counters())
    assert {name.rpartition("/")[2] for name in reads[0]} == {"rx_Octets", "tx_Octets", "rx_Pkts", "tx_Pkts"}
    assert len(reads[0]) == 8 * 24 * 4
    octets = [name for name in reads[0] if name.endswith("Octets")]
    true = {name: min(read[name] for read in reads) for name in octets}
    torn = [read[name] - true[name] for read in reads for name in octets if read[name] != true[name]]
    assert all(difference % 2**32 == 0 and 0 < difference <= 13 * 2**32 for difference in torn)
    assert 0.08 < len(torn) / (len(octets) * len(reads)) < 0.17
