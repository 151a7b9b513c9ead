"""The library's life: what it exports, starting, ending, threads, forks and programs with faults of their own."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hlml_program import (
    ALREADY_INITIALIZED,
    DRIVER_NOT_LOADED,
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_FOUND,
    SUCCESS,
    UNINITIALIZED,
    Library,
    LibraryMaker,
)
from simulated_machine import Machine

from gaudi3_simulator.node import faults
from gaudi3_simulator.vendor import hlml
from gaudi3_simulator.vendor.catalogue import packages


def _names(text: str) -> list[str]:
    return text.split()


# The functions of the header that HabanaAI/gohlml publishes.
HEADER = _names("""
clear_cpu_affinity err_inject get_board_id get_clock_info get_count get_cpu_affinity get_cpu_affinity_within_scope
get_curr_pcie_link_generation get_curr_pcie_link_width get_current_clocks_throttle_reasons get_ecc_mode
get_handle_by_UUID get_handle_by_index get_handle_by_pci_bus_id get_hl_revision get_mac_info get_max_clock_info
get_memory_affinity get_memory_error_counter get_memory_info get_minor_number get_module_id get_name get_pcb_info
get_pci_info get_pcie_replay_counter get_pcie_throughput get_performance_state get_persistence_mode
get_power_management_default_limit get_power_usage get_replaced_rows get_replaced_rows_pending_status get_serial
get_temperature get_temperature_threshold get_total_ecc_errors get_total_energy_consumption get_utilization_rates
get_uuid get_violation_status register_events set_cpu_affinity
""")
WITHOUT_DEVICE = _names("""
event_set_create event_set_free event_set_wait get_cpld_version get_driver_version get_firmware_fit_version
get_firmware_spi_version get_fw_boot_version get_fw_os_version get_hlml_version get_mac_addr_info get_model_number
get_serial_number init init_with_flags nic_get_link nic_get_statistics shutdown
""")
# The release whose habana-pyhlml calls a function first.
LATER = {
    "device_get_clock_limit_info": (1, 18),
    "device_get_power_management_mode": (1, 18),
    "device_get_power_management_limit": (1, 18),
    "device_get_process_utilization": (1, 19),
    "device_set_power_management_limit": (1, 19),
    "device_get_supported_performance_states": (1, 20),
    "get_nic_driver_version": (1, 20),
    "device_get_power_management_limit_constraints": (1, 21),
}
OLDEST_GLIBC = (2, 31)  # Debian 11


def _symbols(path: Path, *options: str) -> list[str]:
    return subprocess.run(
        ["nm", "-D", *options, str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.parametrize("release", ["1.16.2-2", "1.18.0-524", "1.19.2-32", "1.23.0-695", "1.24.0-1007"])
def test_every_function_of_the_header_is_exported_and_nothing_else(release: str) -> None:
    number = tuple(int(part) for part in release.split(".")[:2])
    wanted = {f"hlml_device_{name}" for name in [*HEADER, "get_oper_status"]} | {
        f"hlml_{name}" for name in WITHOUT_DEVICE
    }
    wanted |= {f"hlml_{name}" for name, since in LATER.items() if number >= since}
    exported = {line.split()[-1].partition("@")[0] for line in _symbols(hlml.library(release), "--defined-only")}
    assert exported == wanted


def test_the_library_needs_nothing_that_an_old_system_lacks() -> None:
    needed = subprocess.run(
        ["readelf", "-d", str(hlml.library("1.23.0-695"))], capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", needed) == ["libc.so.6"]
    versions = re.findall(r"@GLIBC_(\d+)\.(\d+)", "\n".join(_symbols(hlml.library("1.23.0-695"))))
    assert max((int(major), int(minor)) for major, minor in versions) <= OLDEST_GLIBC


@pytest.mark.parametrize("release", ["1.22.0-740", "1.23.0-695"])
def test_the_package_of_the_tools_carries_the_library(release: str) -> None:
    owners = {each.name: each for each in packages(release) if hlml.LIBRARY in each.files}
    assert list(owners) == ["habanalabs-firmware-tools"]
    data = owners["habanalabs-firmware-tools"].files["/usr/lib/habanalabs/libhlml.so"].data
    assert data.startswith(b"\x7fELF")
    assert release.encode() in data


def test_nothing_can_be_asked_before_and_after(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine, initialise=False)
    count = ctypes.c_uint()
    assert library.code("hlml_shutdown") == UNINITIALIZED
    assert library.code("hlml_device_get_count", ctypes.byref(count)) == UNINITIALIZED
    library.call("hlml_init_with_flags", 6)
    assert library.code("hlml_init") == ALREADY_INITIALIZED
    assert library.count() == 8
    card = library.card(0)
    library.call("hlml_shutdown")
    assert library.code("hlml_device_get_minor_number", card, ctypes.byref(count)) == UNINITIALIZED
    library.call("hlml_init")
    assert library.number("hlml_device_get_minor_number", card) == 0


@pytest.mark.parametrize("cards", [1, 3, 8])
def test_the_cards_are_counted(bare: Callable[..., Machine], open_library: LibraryMaker, cards: int) -> None:
    machine = bare("gaudi-2", cards)
    machine.install()
    machine.load()
    library = open_library(machine)
    assert library.count() == cards
    handle = ctypes.c_void_p()
    assert library.code("hlml_device_get_handle_by_index", cards, ctypes.byref(handle)) == INVALID_ARGUMENT


def test_without_the_driver_nothing_can_be_asked(bare: Callable[..., Machine], open_library: LibraryMaker) -> None:
    machine = bare()
    library = open_library(machine, initialise=False)
    assert library.code("hlml_init") == DRIVER_NOT_LOADED
    machine.install()
    machine.load()
    library.call("hlml_init")
    assert library.count() == 8


def test_the_driver_can_be_missed_later(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card = library.card(5)
    machine.ok("node", "fault", faults.DRIVER_NOT_LOADED)
    value = ctypes.c_uint()
    assert library.code("hlml_device_get_module_id", card, ctypes.byref(value)) == DRIVER_NOT_LOADED
    machine.load()
    library.number("hlml_device_get_module_id", card)


def test_wrong_arguments_are_refused(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card, value = library.card(0), ctypes.c_uint()
    assert library.code("hlml_device_get_count", None) == INVALID_ARGUMENT
    for handle in (None, ctypes.c_void_p(1), ctypes.byref(value)):
        assert library.code("hlml_device_get_module_id", handle, ctypes.byref(value)) == INVALID_ARGUMENT
    for function in ("hlml_device_get_pci_info", "hlml_device_get_memory_info", "hlml_device_get_pcb_info"):
        assert library.code(function, card, None) == INVALID_ARGUMENT
    for function, choice in (
        ("hlml_device_get_clock_info", 4),
        ("hlml_device_get_temperature", 6),
        ("hlml_device_get_temperature_threshold", 4),
        ("hlml_device_get_pcie_throughput", 2),
        ("hlml_nic_get_link", 24),
        ("hlml_device_get_replaced_rows", 2),
    ):
        assert library.code(function, card, choice, ctypes.byref(value), None) == INVALID_ARGUMENT, function
    name = ctypes.create_string_buffer(b"untouched")
    assert library.code("hlml_device_get_serial", card, name, 4) == INSUFFICIENT_SIZE
    assert name.value == b"untouched"
    handle = ctypes.c_void_p()
    assert library.code("hlml_device_get_handle_by_UUID", b"01P4\n", ctypes.byref(handle)) == INVALID_ARGUMENT
    assert library.code("hlml_device_get_handle_by_UUID", b"01P4", ctypes.byref(handle)) == NOT_FOUND
    assert library.code("hlml_device_get_handle_by_pci_bus_id", b"0000:ff:00.0", ctypes.byref(handle)) == NOT_FOUND


def test_threads_get_the_answers_to_their_own_questions(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    serials = [row[0] for row in machine.csv("serial")]
    cards = [library.card(index) for index in range(8)]

    def ask(turn: int) -> bool:
        return library.text("hlml_device_get_serial", cards[turn % 8]) == serials[turn % 8]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(120)))


def test_a_forked_child_asks_for_itself(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    serials = [row[0] for row in machine.csv("serial")]
    child = os.fork()
    if not child:
        code = 1
        try:
            found = [library.text("hlml_device_get_serial", library.card(index)) for index in range(8)]
            code = 0 if found == serials and library.code("hlml_shutdown") == SUCCESS else 2
        finally:
            os._exit(code)
    for _ in range(3):
        assert [library.text("hlml_device_get_serial", library.card(index)) for index in range(8)] == serials
    assert os.waitpid(child, 0)[1] == 0
    assert library.count() == 8


def _children() -> set[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in listed.split()}


def test_the_process_that_answers_comes_and_goes_with_the_library(machine: Machine, open_library: LibraryMaker) -> None:
    before = _children()
    holder = os.open(machine.path("/dev/accel/accel0"), os.O_RDWR)
    os.set_inheritable(holder, True)
    library = open_library(machine)
    (process,) = _children() - before
    library.count()
    # It holds no file of the program, such as a card, and leaves the terminal's process group.
    assert len(list(Path(f"/proc/{process}/fd").iterdir())) == 3
    assert os.getpgid(process) != os.getpgid(0)
    os.kill(process, 9)
    assert library.count() == 8
    library.call("hlml_shutdown")
    os.close(holder)
    assert _children() == before


def test_a_program_that_dies_leaves_nothing_behind(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine, initialise=False)
    program = (
        "import ctypes, os, sys; library = ctypes.CDLL(sys.argv[1]); assert library.hlml_init() == 0; "
        "print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(["python3", "-c", program, str(library.path)], capture_output=True, text=True, check=False)
    process = Path(f"/proc/{int(done.stdout)}")
    for _ in range(100):
        if not process.exists() or "\nState:\tZ" in (process / "status").read_text():
            break
        time.sleep(0.02)
    else:
        pytest.fail("the process that answered is still there")


ASKED = """
import fcntl, os, struct, sys
query = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
with open(sys.argv[1], "rb") as file:
    kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, query))
print(0 if kind == fcntl.F_UNLCK else pid)
"""


@pytest.mark.parametrize(("release", "index"), [("1.17.1-40", 2), ("1.24.0-1007", 5)])
def test_a_process_that_holds_a_card_and_asks_about_it_goes_on_holding_it(
    machine: Machine, open_library: LibraryMaker, release: str, index: int
) -> None:
    """Linux drops the lock of a card file when its own process closes any descriptor of the file."""
    path = machine.card_file(index)

    def held() -> int:
        command = [sys.executable, "-S", "-E", "-c", ASKED, str(path)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    with path.open("rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write(struct.pack("<8Q", 1, os.getpid(), 3 << 20, 3 << 20, 0, 0, 0, 0))
        file.flush()
        assert held() == os.getpid()
        library = open_library(machine, release)
        for card in map(library.card, range(library.count())):
            used = library.structure("hlml_device_get_memory_info", ctypes.c_ulonglong * 3, card)[2]
            assert (used >= 3 << 20) or library.number("hlml_device_get_minor_number", card) != index
        library.call("hlml_shutdown")
        assert held() == os.getpid(), "the library opened and closed the card file in its caller's process"
        path.open("rb").close()
        assert held() == 0, "what the library must not do"


def test_two_releases_answer_side_by_side(machine: Machine, open_library: LibraryMaker) -> None:
    versions = {}
    for release in ("1.22.1-6", "1.24.0-1007"):
        library: Library = open_library(machine, release)
        versions[release] = library.text("hlml_get_hlml_version")
    for release, version in versions.items():
        assert version in machine.ok("hl-smi", "-v", release=release).out
    assert len(set(versions.values())) == 2
