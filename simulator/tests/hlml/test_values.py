"""Each value of the library is what hl-smi shows, on releases of every layout of its structures."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import pytest
from hlml_program import INVALID_ARGUMENT, NO_DATA, NOT_SUPPORTED, Library, LibraryMaker
from simulated_machine import Machine

from gaudi3_simulator.node import releases

MIB = 1024 * 1024
RELEASES = ["1.17.1-40", "1.18.0-524", "1.19.1-26", "1.23.0-695", "1.24.0-1007"]


class Release:
    """Structures of one release, as its habana-pyhlml declares them."""

    def __init__(self, release: str) -> None:
        self.number = tuple(int(part) for part in release.split(".")[:2])
        address = 19 if self.number >= (1, 19) else 15
        link = ctypes.c_char * 10
        caps = type(
            "Caps", (ctypes.Structure,),
            {"_fields_": [(name, link) for name in ("speed", "width", "max_speed", "max_width")]},
        )  # fmt: skip
        fields = [("bus", ctypes.c_uint), ("bus_id", ctypes.c_char * address), ("device", ctypes.c_uint)]
        fields += [("domain", ctypes.c_uint), ("pci_device_id", ctypes.c_uint), ("caps", caps)]
        fields += [("pci_rev", ctypes.c_uint)]
        if self.number >= (1, 18):
            fields.append(("pci_subsys_id", ctypes.c_uint))
        # What lies behind a structure has to stay as it was.
        guard = ("guard", ctypes.c_ubyte * 64)
        self.pci = type("Pci", (ctypes.Structure,), {"_fields_": [*fields, guard]})
        loads = ["aip", "memory"] if self.number >= (1, 19) else ["aip"]
        self.utilization = type(
            "Utilization", (ctypes.Structure,), {"_fields_": [*((name, ctypes.c_uint) for name in loads), guard]}
        )


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("free", "total", "used")]


class Pcb(ctypes.Structure):
    _fields_ = [("version", ctypes.c_char * 32), ("assembly", ctypes.c_char * 32)]


class Mac(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_ubyte * 6), ("id", ctypes.c_int)]


class Violation(ctypes.Structure):
    _fields_ = [("reference", ctypes.c_ulonglong), ("violation", ctypes.c_ulonglong)]


class Counters(ctypes.Structure):
    _fields_ = [
        ("port", ctypes.c_uint32),
        ("names", ctypes.c_char_p),
        ("values", ctypes.POINTER(ctypes.c_uint64)),
        ("count", ctypes.POINTER(ctypes.c_uint32)),
    ]


def on(machine: Machine, release: str) -> Machine:
    """The node with another release installed and loaded."""
    machine.install(release)
    image = releases.firmware_text(release).replace("gaudi3", "gaudi2")  # for a board that has no packages here
    machine.write("/lib/firmware/habanalabs/gaudi2/gaudi2-boot-fit.itb", image)
    machine.load()
    machine.at(machine.now + 100)
    return machine


def log(machine: Machine, index: int, release: str) -> dict[str, str]:
    """Labels and values of ``hl-smi -q`` of one card."""
    (bus_id,) = machine.csv("bus_id", release=release)[index]
    lines = machine.ok("hl-smi", "-q", "-i", bus_id, release=release).lines
    pairs = [line.partition(":") for line in lines]
    return {re.sub(r"^\[ ?\d+\] ", "", label.strip()): value.strip() for label, colon, value in pairs if colon}


@pytest.mark.parametrize(
    ("release", "board"), [*((release, "HL-325L") for release in RELEASES), ("1.23.0-695", "HL-225")]
)
def test_every_value_is_the_one_of_hl_smi(
    bare: Callable[..., Machine], open_library: LibraryMaker, release: str, board: str
) -> None:
    machine = on(bare(f"node-{release}", board=board), release)
    library, layout = open_library(machine, release), Release(release)
    shown = machine.csv(
        "name,uuid,serial,module_id,bus_id,memory.total,memory.free,memory.used,power.draw,power.max,temperature.aip,"
        "utilization.aip,utilization.memory,clocks.current.soc,clocks.max.soc",
        release=release,
    )
    for index in (0, 3, 7):
        name, uuid, serial, module, bus_id, total, free, used, draw, most, celsius, load, share, clock, clock_max = (
            shown[index]
        )
        card = library.card(index)
        assert library.text("hlml_device_get_name", card, length=8) == name
        assert library.text("hlml_device_get_uuid", card) == uuid
        assert library.text("hlml_device_get_serial", card) == serial
        assert library.text("hlml_get_serial_number", card) == serial
        assert library.number("hlml_device_get_module_id", card) == int(module)
        assert library.number("hlml_device_get_board_id", card) == int(module)
        assert library.number("hlml_device_get_minor_number", card) == index
        assert library.number("hlml_device_get_power_usage", card) == int(draw) * 1000
        assert library.number("hlml_device_get_power_management_default_limit", card) == int(most) * 1000
        assert library.number("hlml_device_get_temperature", card, 0) == int(celsius)
        assert library.number("hlml_device_get_clock_info", card, 0) == int(clock)
        assert library.number("hlml_device_get_max_clock_info", card, 0) == int(clock_max)
        memory = library.structure("hlml_device_get_memory_info", Memory, card)
        assert (memory.total, memory.free, memory.used) == (int(total) * MIB, int(free) * MIB, int(used) * MIB)
        utilization = library.structure("hlml_device_get_utilization_rates", layout.utilization, card)
        assert utilization.aip == int(load)
        assert not any(utilization.guard)
        if layout.number >= (1, 19):
            assert utilization.memory == int(share)
        check_pci(library, layout, card, bus_id, log(machine, index, release))


def check_pci(library: Library, layout: Release, card: Any, bus_id: str, entries: dict[str, str]) -> None:
    pci = library.structure("hlml_device_get_pci_info", layout.pci, card)
    assert pci.bus_id.decode() == bus_id
    assert f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0" == bus_id
    assert f"0x{pci.pci_device_id:08x}" == entries["Device Id"]
    assert pci.pci_rev == int(entries["Rev"], 16)
    assert pci.caps.max_width.decode().lstrip("x").isdigit()
    assert pci.caps.width == pci.caps.max_width
    assert pci.caps.speed == pci.caps.max_speed
    assert not any(pci.guard)
    if layout.number >= (1, 18):
        assert f"0x{pci.pci_subsys_id:08x}" == entries["Sub System Id"]


@pytest.mark.parametrize("release", ["1.20.0-543", "1.23.0-695"])
def test_every_version_is_the_one_of_hl_smi(
    bare: Callable[..., Machine], open_library: LibraryMaker, release: str
) -> None:
    machine = on(bare("gaudi-7"), release)
    library = open_library(machine, release)
    driver, nic = machine.csv("driver_version,nic_driver_version", release=release)[0]
    assert library.text("hlml_get_driver_version") == driver
    assert library.text("hlml_get_nic_driver_version") == nic
    assert f" {library.text('hlml_get_hlml_version')} " in machine.ok("hl-smi", "-v", release=release).out
    for index in (1, 6):
        card, entries = library.card(index), log(machine, index, release)
        for function, label in {
            "hlml_get_firmware_fit_version": "Firmware [FIT] Version",
            "hlml_get_firmware_spi_version": "Firmware [SPI] Version",
            "hlml_get_fw_boot_version": "Firmware [UBOOT] Version",
            "hlml_get_fw_os_version": "Firmware [OS] Version",
            "hlml_get_cpld_version": "CPLD Version",
            "hlml_get_model_number": "Model Number",
            "hlml_device_get_oper_status": "Module status",
        }.items():
            assert library.text(function, card) == entries[label], label
        assert library.number("hlml_device_get_hl_revision", card) == int(entries["HL Revision"])
        pcb = library.structure("hlml_device_get_pcb_info", Pcb, card)
        assert pcb.version.decode() == entries["PCB Version"]
        assert pcb.assembly.decode() == entries["PCB Assembly Version"]


def test_handles_by_address_and_by_uuid_are_those_by_index(machine: Machine, open_library: LibraryMaker) -> None:
    library, found = open_library(machine), ctypes.c_void_p()
    for index, (bus_id, uuid) in enumerate(machine.csv("bus_id,uuid")):
        for function, key in (
            ("hlml_device_get_handle_by_pci_bus_id", bus_id),
            ("hlml_device_get_handle_by_pci_bus_id", bus_id.upper()),
            ("hlml_device_get_handle_by_pci_bus_id", bus_id.partition(":")[2]),
            ("hlml_device_get_handle_by_UUID", uuid),
        ):
            library.call(function, key.encode(), ctypes.byref(found))
            assert library.number("hlml_device_get_minor_number", found) == index


def test_a_load_shows(machine: Machine, open_library: LibraryMaker) -> None:
    machine.hold(2, 5, mib=70_001)
    machine.hold(7, mib=300, share=0.5)
    machine.at(machine.now + 60)
    library = open_library(machine)
    shown = machine.csv("power.draw,utilization.aip,memory.used")
    assert [index for index, row in enumerate(shown) if int(row[1])] == [2, 5, 7]
    for index, (draw, load, used) in enumerate(shown):
        card = library.card(index)
        assert library.number("hlml_device_get_power_usage", card) == int(draw) * 1000
        assert library.structure("hlml_device_get_memory_info", Memory, card).used == int(used) * MIB
        utilization = library.structure("hlml_device_get_utilization_rates", Release("1.23.0").utilization, card)
        assert utilization.aip == int(load) == library.number("hlml_device_get_process_utilization", card)
        assert (library.number("hlml_device_get_pcie_throughput", card, 1) > 0) is (int(load) > 0)


def test_energy_is_the_sum_of_the_power_and_never_falls(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card = library.card(2)
    function = "hlml_device_get_total_energy_consumption"
    readings = []
    for _ in range(4):
        readings.append(library.number(function, card, wide=True))
        machine.at(machine.now + 10)
        library.call("hlml_shutdown")  # the process that answers has the clock of its start
        library.call("hlml_init")
    watts = int(machine.csv("power.draw")[2][0])
    assert readings == sorted(readings)
    assert readings[-1] - readings[-2] == pytest.approx(watts * 10 * 1000, rel=0.05)
    machine.ok("rmmod", "habanalabs_ib")
    for module in ("habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("rmmod", module)
    machine.load()
    library.call("hlml_shutdown")
    library.call("hlml_init")
    assert library.number(function, card, wide=True) < readings[0]


def test_power_limits(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card, low, high = library.card(4), ctypes.c_uint(), ctypes.c_uint()
    default = library.number("hlml_device_get_power_management_default_limit", card)
    library.call("hlml_device_get_power_management_limit_constraints", card, ctypes.byref(low), ctypes.byref(high))
    assert low.value < default <= high.value
    assert library.number("hlml_device_get_power_management_mode", card) == 1
    library.call("hlml_device_set_power_management_limit", card, low.value + 20_000)
    assert library.number("hlml_device_get_power_management_limit", card) == low.value + 20_000
    assert machine.csv("power.max")[4] == [str((low.value + 20_000) // 1000)]
    assert machine.csv("power.max")[5] == [str(default // 1000)]
    assert library.number("hlml_device_get_power_management_default_limit", card) == default
    for milliwatts in (low.value - 1000, high.value + 1000):
        assert library.code("hlml_device_set_power_management_limit", card, milliwatts) == INVALID_ARGUMENT
    machine.as_user(1000)
    library.call("hlml_shutdown")
    library.call("hlml_init")
    assert library.code("hlml_device_set_power_management_limit", card, high.value) == NOT_SUPPORTED


def test_ports_links_and_addresses(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    for index in (0, 5):
        card = library.card(index)
        (bus_id,) = machine.csv("bus_id")[index]
        kinds = {
            int(line.split()[1].rstrip(":")): line.split()[-1]
            for line in machine.ok("hl-smi", "-n", "ports", "-i", bus_id).lines
        }
        ports, external = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)()
        library.call("hlml_get_mac_addr_info", card, ports, external)
        assert {port for port in range(64) if ports[0] >> port & 1} == set(kinds)
        assert {port for port in range(64) if external[0] >> port & 1} == {
            port for port, kind in kinds.items() if kind == "external"
        }
        assert ports[1] == external[1] == 0
        machine.ok("manage_network_ifs.sh", "--up")
        up = ctypes.c_bool()
        for port in kinds:
            library.call("hlml_nic_get_link", card, port, ctypes.byref(up))
            line = machine.ok("hl-smi", "-n", "link", "-i", bus_id, "-P", str(port)).out
            assert up.value is line.endswith("UP\n")
        addresses, count = (Mac * 48)(), ctypes.c_uint()
        library.call("hlml_device_get_mac_info", card, addresses, 48, 1, ctypes.byref(count))
        text = machine.ok("hl-smi", "-q", "-d", "NET", "-i", bus_id).out
        assert count.value == len(kinds)
        shown = re.findall(r"\[ ?(\d+)\] .*?((?:[0-9a-f]{2}:){5}[0-9a-f]{2})", text, re.IGNORECASE)
        assert [(mac.id, bytes(mac.addr).hex(":")) for mac in addresses[: count.value]] == [
            (int(number), address.lower()) for number, address in shown
        ]
        library.call("hlml_device_get_mac_info", card, addresses, 4, 22, ctypes.byref(count))
        assert [mac.id for mac in addresses[: count.value]] == [22, 23, 24]


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
def test_port_masks_of_one_word_each_are_whole(
    machine: Machine, open_library: LibraryMaker, first: int, second: int
) -> None:
    """The vendor's metric exporter gives one word for each mask, and they may lie side by side."""
    library = open_library(machine)
    whole, side_by_side = ((ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)()), (ctypes.c_uint64 * 3)()
    library.call("hlml_get_mac_addr_info", library.card(0), *whole)
    places = [ctypes.byref(side_by_side, 8 * place) for place in (first, second)]
    library.call("hlml_get_mac_addr_info", library.card(0), *places)
    assert (side_by_side[first], side_by_side[second]) == (whole[0][0], whole[1][0])


@pytest.mark.parametrize("port", [0, 7, 23])
def test_counters_of_a_port(machine: Machine, open_library: LibraryMaker, port: int) -> None:
    library = open_library(machine)
    (bus_id,) = machine.csv("bus_id")[6]
    lines = machine.ok("hl-smi", "-n", "stats", "-i", bus_id, "-P", str(port)).lines
    pairs = [line.rpartition(":") for line in lines]
    wanted = {name.strip(): int(value) for name, _, value in pairs if value.strip().isdigit()}
    names = ctypes.create_string_buffer(256 * 34)
    values, count = (ctypes.c_uint64 * 256)(), ctypes.c_uint32()
    counters = Counters(port, ctypes.cast(names, ctypes.c_char_p), values, ctypes.pointer(count))
    library.call("hlml_nic_get_statistics", library.card(6), ctypes.byref(counters))
    found = {
        names.raw[place * 34 : place * 34 + 34].partition(b"\0")[0].decode(): values[place]
        for place in range(count.value)
    }
    assert found == wanted
    assert found


def test_the_pcie_link_is_read_from_sysfs(
    machine: Machine, open_library: LibraryMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_library(machine)
    card, value = library.card(0), ctypes.c_uint()
    functions = ("hlml_device_get_curr_pcie_link_generation", "hlml_device_get_curr_pcie_link_width")
    assert [library.code(function, card, ctypes.byref(value)) for function in functions] == [NOT_SUPPORTED] * 2
    monkeypatch.setenv("GAUDI3_SIMULATOR_STRICTNESS", "hlml-pcie-link-unsupported=off")
    library.call("hlml_shutdown")
    library.call("hlml_init")
    generation, width = machine.csv("pcie.link.gen.current,pcie.link.width.current")[0]
    assert library.number(functions[0], card) == int(generation.removeprefix("Gen"))
    assert library.number(functions[1], card) == int(width.lstrip("x"))


def test_what_the_library_does_not_know(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card, value = library.card(1), ctypes.c_uint()
    for function in (
        "hlml_device_get_clock_info",
        "hlml_device_get_max_clock_info",
        "hlml_device_get_clock_limit_info",
    ):
        assert [library.code(function, card, kind, ctypes.byref(value)) for kind in (1, 2, 3)] == [NOT_SUPPORTED] * 3
    for sensor in (2, 4, 5):
        assert library.code("hlml_device_get_temperature", card, sensor, ctypes.byref(value)) == NOT_SUPPORTED
    assert library.code("hlml_device_get_persistence_mode", card, ctypes.byref(value)) == NOT_SUPPORTED
    assert library.code("hlml_device_err_inject", card, 0) == NOT_SUPPORTED


def test_sensors_of_a_kind_show_their_hottest(machine: Machine, open_library: LibraryMaker) -> None:
    library, value = open_library(machine), ctypes.c_uint()
    entries = log(machine, 2, "1.23.0-695")
    for number, label in ((1, "On Board"), (3, "HBM")):
        shown = [int(text.split()[0]) for name, text in entries.items() if name.startswith(label)]
        code = library.code("hlml_device_get_temperature", library.card(2), number, ctypes.byref(value))
        assert (value.value == max(shown)) if shown else code in (NOT_SUPPORTED, NO_DATA)
    for threshold in range(4):
        assert library.number("hlml_device_get_temperature_threshold", library.card(2), threshold) > 60


def test_processors_near_a_card(machine: Machine, open_library: LibraryMaker) -> None:
    (bus_id,) = machine.csv("bus_id")[0]
    machine.write(f"/sys/bus/pci/devices/{bus_id}/local_cpulist", "0-2,64,66-67\n")
    library = open_library(machine)
    card, words = library.card(0), (ctypes.c_ulong * 2)()
    library.call("hlml_device_get_cpu_affinity", card, 2, words)
    assert list(words) == [0b111, 0b1101]
    library.call("hlml_device_get_memory_affinity", card, 1, words, 0)
    assert words[0] == 1 << machine.state()["cards"][0]["numa_node"]
    library.call("hlml_device_clear_cpu_affinity", card)


def test_nothing_throttles_a_sound_card(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card = library.card(3)
    assert library.number("hlml_device_get_current_clocks_throttle_reasons", card, wide=True) == 0
    assert library.structure("hlml_device_get_violation_status", Violation, card, 1).violation == 0
    assert library.number("hlml_device_get_pcie_replay_counter", card) == 0
    assert library.number("hlml_device_get_performance_state", card) == 0
    states = (ctypes.c_uint * 16)()
    library.call("hlml_device_get_supported_performance_states", card, states, 16)
    assert list(states) == [0] + [32] * 15
