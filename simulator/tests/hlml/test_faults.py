"""What a program over the library sees of a fault, and of the events that go with it."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import pytest
from hlml_program import AIP_IS_LOST, CRITICAL, ECC_DOUBLE, INVALID_ARGUMENT, SUCCESS, TIMEOUT, Library, LibraryMaker
from simulated_machine import Machine

from gaudi3_simulator.node import faults


class Event(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("types", ctypes.c_ulonglong)]


class Row(ctypes.Structure):
    _fields_ = [("hbm", ctypes.c_uint8), ("pc", ctypes.c_uint8), ("sid", ctypes.c_uint8), ("bank", ctypes.c_uint8)]
    _fields_ += [("row", ctypes.c_uint16)]


@pytest.mark.parametrize("missing", [0, 3, 7])
def test_a_missing_card_leaves_a_gap_in_the_indexes(machine: Machine, open_library: LibraryMaker, missing: int) -> None:
    library = open_library(machine)
    lost, value = library.card(missing), ctypes.c_uint()
    machine.ok("node", "fault", faults.CARD_MISSING, "--card", str(missing))
    assert library.count() == 7
    assert library.code("hlml_device_get_module_id", lost, ctypes.byref(value)) == AIP_IS_LOST
    handle = ctypes.c_void_p()
    codes = [library.code("hlml_device_get_handle_by_index", index, ctypes.byref(handle)) for index in range(8)]
    assert codes == [INVALID_ARGUMENT if index == missing else SUCCESS for index in range(8)]
    machine.ok("node", "fault", faults.CARD_MISSING, "--card", str(missing), "--clear")
    assert library.number("hlml_device_get_minor_number", lost) == missing


@pytest.mark.parametrize("index", [1, 6])
def test_an_uncorrected_error_is_counted_where_hl_smi_counts_it(
    machine: Machine, open_library: LibraryMaker, index: int
) -> None:
    library = open_library(machine)
    machine.ok("node", "fault", faults.ECC_UNCORRECTED, "--card", str(index))
    fields = [
        f"ecc.errors.{which}.{kind}.total" for which in ("uncorrected", "dram") for kind in ("volatile", "aggregate")
    ]
    corrected = [f"ecc.errors.{which}.volatile.total" for which in ("corrected", "dram-corrected")]
    for card_index, shown in enumerate(machine.csv(",".join([*fields, *corrected]))):
        card = library.card(card_index)
        total = [library.number("hlml_device_get_total_ecc_errors", card, 1, kind, wide=True) for kind in (0, 1)]
        dram = [library.number("hlml_device_get_memory_error_counter", card, 1, kind, 1, wide=True) for kind in (0, 1)]
        fixed = [library.number("hlml_device_get_total_ecc_errors", card, 0, 0, wide=True)]
        fixed += [library.number("hlml_device_get_memory_error_counter", card, 0, 0, 1, wide=True)]
        assert [str(count) for count in (*total, *dram, *fixed)] == shown
        assert sum(total) == (2 if card_index == index else 0)
        sram = library.number("hlml_device_get_memory_error_counter", card, 1, 0, 0, wide=True)
        everywhere = library.number("hlml_device_get_memory_error_counter", card, 1, 0, 2, wide=True)
        assert sram + dram[0] == everywhere == total[0]


def test_replaced_rows(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    machine.ok("node", "fault", faults.ECC_UNCORRECTED, "--card", "2")
    for index in (2, 3):
        (bus_id,) = machine.csv("bus_id")[index]
        text = machine.ok("hl-smi", "-q", "-d", "ROW_REPLACEMENT", "-i", bus_id).out
        shown = {
            label.strip(): value.strip() for label, _, value in (line.partition(":") for line in text.splitlines())
        }
        card = library.card(index)
        for cause, label in enumerate(("Single Bit ECC", "Double Bit ECC")):
            count = ctypes.c_uint()
            library.call("hlml_device_get_replaced_rows", card, cause, ctypes.byref(count), None)
            assert count.value == int(shown[label])
            rows = (Row * 32)()
            room = ctypes.c_uint(32)
            library.call("hlml_device_get_replaced_rows", card, cause, ctypes.byref(room), rows)
            assert sum(1 for row in rows if row.row) == count.value
        pending = library.number("hlml_device_get_replaced_rows_pending_status", card)
        assert pending == (shown["Pending"] == "Yes")


def test_a_port_that_is_down_and_lanes_that_are_lost(machine: Machine, open_library: LibraryMaker) -> None:
    library, up = open_library(machine), ctypes.c_bool()
    machine.ok("manage_network_ifs.sh", "--up")
    external = (ctypes.c_uint64 * 2)()
    library.call("hlml_get_mac_addr_info", library.card(4), (ctypes.c_uint64 * 2)(), external)
    port = max(port for port in range(64) if external[0] >> port & 1)
    machine.ok("node", "fault", faults.PORT_DOWN, "--card", "4", "--port", str(port))
    machine.ok("node", "fault", faults.PCIE_WIDTH, "--card", "4")
    for index in (4, 5):
        library.call("hlml_nic_get_link", library.card(index), port, ctypes.byref(up))
        assert up.value is (index != 4)
        pci = ctypes.create_string_buffer(256)
        library.call("hlml_device_get_pci_info", library.card(index), pci)
        (width,) = machine.csv("pcie.link.width.current")[index]
        assert width.encode() + b"\0" in pci.raw
    assert machine.csv("pcie.link.width.current")[4] != machine.csv("pcie.link.width.current")[5]


def test_a_card_without_warmth(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    machine.ok("node", "fault", faults.TEMPERATURE_ZERO, "--card", "1")
    assert library.number("hlml_device_get_temperature", library.card(1), 0) == 0
    assert library.number("hlml_device_get_temperature", library.card(2), 0) > 20


def test_a_card_in_reset_says_so(machine: Machine, open_library: LibraryMaker) -> None:
    library = open_library(machine)
    card = library.card(6)
    assert library.text("hlml_device_get_oper_status", card, length=30) == "Operational"
    machine.ok("node", "fault", faults.CARD_IN_RESET, "--card", "6")
    (bus_id,) = machine.csv("bus_id")[6]
    shown = machine.ok("hl-smi", "-q", "-d", "PRODUCT", "-i", bus_id).out
    status = library.text("hlml_device_get_oper_status", card, length=30)
    assert f": {status}\n" in shown
    assert status != "Operational"


def register(library: Library, types: int, cards: list[int]) -> Any:
    handle = ctypes.c_void_p()
    library.call("hlml_event_set_create", ctypes.byref(handle))
    for index in cards:
        library.call("hlml_device_register_events", library.card(index), ctypes.c_ulonglong(types), handle)
    return handle


@pytest.mark.parametrize(
    ("kind", "types", "sees"),
    [
        (faults.CARD_IN_RESET, CRITICAL, CRITICAL),
        (faults.CARD_MISSING, CRITICAL, CRITICAL),
        (faults.ECC_UNCORRECTED, CRITICAL | ECC_DOUBLE, ECC_DOUBLE),
        (faults.ECC_UNCORRECTED, CRITICAL, 0),
    ],
)
def test_an_event_is_told_once_and_only_to_who_asked(
    machine: Machine, open_library: LibraryMaker, kind: str, types: int, sees: int
) -> None:
    library = open_library(machine)
    card, event = library.card(5), Event()
    everywhere, elsewhere = register(library, types, list(range(8))), register(library, types, [0, 1])
    machine.ok("node", "fault", kind, "--card", "5")
    assert library.code("hlml_event_set_wait", elsewhere, ctypes.byref(event), 0) == TIMEOUT
    code = library.code("hlml_event_set_wait", everywhere, ctypes.byref(event), 0)
    assert code == (SUCCESS if sees else TIMEOUT)
    if sees:
        assert (event.device, event.types) == (card.value, sees)
    assert library.code("hlml_event_set_wait", everywhere, ctypes.byref(event), 0) == TIMEOUT
    library.call("hlml_event_set_free", everywhere)
    assert library.code("hlml_event_set_free", everywhere) == INVALID_ARGUMENT
    assert library.code("hlml_event_set_wait", everywhere, ctypes.byref(event), 0) == INVALID_ARGUMENT


def test_a_fault_between_two_waits_is_not_lost(machine: Machine, open_library: LibraryMaker) -> None:
    library, event = open_library(machine), Event()
    events = register(library, CRITICAL, [2])
    (bus_id,) = machine.csv("bus_id")[2]
    machine.ok("node", "fault", faults.CARD_IN_RESET, "--card", "2")
    machine.ok("hl-smi", "-r", "-i", bus_id)
    library.call("hlml_event_set_wait", events, ctypes.byref(event), 0)
    assert event.types == CRITICAL
    assert library.code("hlml_event_set_wait", events, ctypes.byref(event), 0) == TIMEOUT


def test_a_wait_ends_with_the_event_or_with_its_time(machine: Machine, open_library: LibraryMaker) -> None:
    library, event = open_library(machine), Event()
    events = register(library, CRITICAL, [0])
    started = time.monotonic()
    assert library.code("hlml_event_set_wait", events, ctypes.byref(event), 250) == TIMEOUT
    assert time.monotonic() - started >= 0.25
    codes: list[int] = []
    waiter = threading.Thread(
        target=lambda: codes.append(library.code("hlml_event_set_wait", events, ctypes.byref(event), 60_000))
    )
    waiter.start()
    # Others are answered meanwhile.
    assert library.count() == 8
    machine.ok("node", "fault", faults.CARD_IN_RESET, "--card", "0")
    waiter.join(timeout=50)
    assert codes == [SUCCESS]


def test_the_process_that_answers_holds_no_card(machine: Machine, open_library: LibraryMaker) -> None:
    """The library does not keep a card from others, nor the driver from being unloaded."""
    library = open_library(machine)
    library.number("hlml_device_get_module_id", library.card(0))
    for module in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("rmmod", module)
