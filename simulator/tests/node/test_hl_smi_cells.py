"""Cells that are not what a sound card shows, and options that public tools use."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulated_machine import START, Machine, of_the_product


def break_card(machine: Machine, **fault: Any) -> None:
    """Put a fault on the node as its state keeps it."""
    state = machine.state()
    state["faults"].append(fault)
    machine.write("/var/lib/gaudi3-simulator/state.json", json.dumps(state))


@pytest.mark.parametrize("card", [0, 5])
def test_a_card_in_reset_prints_numbers(machine: Machine, card: int) -> None:
    """The vendor's Health Screen makes integers of two cells; the reset is told by the status alone."""
    machine.hold(card, mib=3000)
    machine.at(START + 60)
    machine.ok("node", "fault", "card-in-reset", "--card", str(card))
    fields = "index,module_id,bus_id,memory.used,temperature.aip,name"
    rows = [line.split(",") for line in machine.ok("hl-smi", "-Q", fields, "-f", "csv,noheader").lines]
    assert all(int(row[3].split()[0]) >= 0 <= int(row[4].split()[0]) for row in rows)
    total, used, free, utilization = machine.csv("memory.total,memory.used,memory.free,utilization.aip")[card]
    assert (total, used, free, utilization) == ("672", "672", "0", "0")
    assert machine.csv("memory.total")[(card + 1) % 8] == ["131072"]
    assert machine.read(f"/sys/class/accel/accel{card}/device/status") == "In reset"


@pytest.mark.parametrize("busy", [False, True])
def test_the_csv_shows_one_rail_and_the_table_both(machine: Machine, busy: bool) -> None:
    if busy:
        machine.hold(*range(8))
        machine.at(START + 60)
    rows = machine.csv("power.draw,bus_id")
    table = [line for line in machine.ok("hl-smi").lines if "W  |" in line]
    for (draw, bus_id), line in zip(rows, table, strict=True):
        both = int(line.split("W /")[0].split()[-1])
        log = machine.ok("hl-smi", "-q", "-d", "POWER", "-i", bus_id).lines
        rails = [int(entry.split(":")[1].split()[0]) for entry in log if "Power Draw" in entry]
        assert rails == [int(draw), both - int(draw)]
        assert 15 < rails[1] <= 50


@pytest.mark.parametrize(("name", "cards"), [("gaudi-1", 8), ("gaudi-2", 8), ("gaudi-7", 3), ("gaudi-9", 2)])
def test_rows_are_not_sorted_by_index(bare: Callable[..., Machine], name: str, cards: int) -> None:
    machine = bare(name, cards)
    machine.install()
    machine.load()
    listed = [int(line) for line in machine.ok("hl-smi", "-Q", "index", "-f", "csv,noheader").lines]
    assert sorted(listed) == list(range(cards))
    assert listed != sorted(listed)
    again = machine.ok("hl-smi", "-Q", "index,bus_id", "-f", "csv,noheader").lines
    assert [int(line.split(",")[0]) for line in again] == listed
    assert [line.split()[1] for line in machine.ok("hl-smi").lines if "HL-325L" in line] == [
        str(n) for n in range(cards)
    ]


def test_the_collection_reads_odd_cells(machine: Machine) -> None:
    parser = of_the_product("plugins/module_utils/_hl_smi/hl_smi.py")
    card = importlib.import_module("_hl_smi.card")
    fields = parser.QUERY_FIELDS
    output = machine.ok("hl-smi", "-Q", ",".join(fields), "-f", "csv,noheader,nounits").out
    assert "Gen5" in output
    facts = [card.read_card(row, None, None).as_facts() for row in parser.parse_csv(output, fields)]
    assert {card["pcie"]["gen_current"] for card in facts} == {5}


@pytest.mark.parametrize("card", [1, 6])
def test_an_absurd_temperature_is_printed_as_it_is(machine: Machine, card: int) -> None:
    break_card(machine, kind="temperature-absurd", card=card)
    assert machine.csv("temperature.aip")[card] == ["505712272"]
    assert machine.csv("temperature.aip")[card - 1] != ["505712272"]
    line = machine.ok("hl-smi").lines[9 + 3 * card]
    assert line.split()[2] == "505712272C"
    assert len(line) > 79


def test_errors_in_the_thousands_keep_the_column(machine: Machine) -> None:
    break_card(machine, kind="ecc-uncorrected", card=2, count=4711)
    line = machine.ok("hl-smi").lines[8 + 3 * 2]
    assert line.endswith("|                4711  |")
    assert len(line) == 79
    assert machine.csv("ecc.errors.uncorrected.volatile.total")[2] == ["4711"]


@pytest.mark.parametrize(("kind", "fields", "values"), [
    ("ecc-corrected", "ecc.errors.corrected.volatile.total,ecc.errors.dram-corrected.aggregate.total", ["17", "17"]),
    ("throttled-power", "stats.violation.power,stats.violation.thermal", ["17", "0"]),
    ("throttled-thermal", "stats.violation.power,stats.violation.thermal", ["0", "17"]),
])  # fmt: skip
def test_conditions_are_counted(machine: Machine, kind: str, fields: str, values: list[str]) -> None:
    sound = machine.csv(fields)
    break_card(machine, kind=kind, card=4, count=17)
    assert machine.csv(fields) == [*sound[:4], values, *sound[5:]]


def test_throttling_is_in_the_log(machine: Machine) -> None:
    break_card(machine, kind="throttled-thermal", card=0)
    log = machine.ok("hl-smi", "-q", "-i", machine.csv("bus_id")[0][0]).lines
    place = next(number for number, line in enumerate(log) if "Thermal Slowdown" in line)
    assert log[place + 1].split(": ")[1] == "Active"
    assert log[place + 3].split(": ")[1] == "Not Active"
    assert log[place - 1].split(": ")[1] == "Active"


@pytest.mark.parametrize(("generation", "speed"), [(1, "2.5GT/s"), (3, "8GT/s"), (4, "16GT/s")])
def test_a_slower_generation_of_pcie_is_shown(machine: Machine, generation: int, speed: str) -> None:
    fields = "pcie.link.gen.current,pcie.link.gen.max,pcie.link.speed.current,pcie.link.speed.max"
    break_card(machine, kind="pcie-generation", card=3, generation=generation)
    assert machine.csv(fields)[3] == [f"Gen{generation}", "Gen5", speed, "32GT/s"]
    assert machine.csv(fields)[2] == ["Gen5", "Gen5", "32GT/s", "32GT/s"]


def test_rows_that_wait_are_pending(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[1][0]
    assert machine.ok("hl-smi", "-q", "-d", "ROW_REPLACEMENT", "-i", bus_id).lines[-2].split(": ")[1] == "No"
    break_card(machine, kind="row-pending", card=1)
    assert machine.ok("hl-smi", "-q", "-d", "ROW_REPLACEMENT", "-i", bus_id).lines[-2].split(": ")[1] == "Yes"


def test_replaced_rows_are_listed(machine: Machine) -> None:
    fields = "uuid,replaced_rows.address,replaced_rows.cause"
    assert machine.ok("hl-smi", "--query-row-replacement", fields, "-f", "csv").lines == [fields.replace(",", ", ")]
    machine.ok("node", "fault", "ecc-uncorrected", "--card", "3")
    uuid = machine.csv("uuid")[3][0]
    listed = machine.ok("hl-smi", f"--query-row-replacement={fields}", "-f", "csv,noheader").lines
    assert [line.split(", ")[::2] for line in listed] == [[uuid, "Double Bit ECC"]]
    assert int(listed[0].split(", ")[1], 16) > 0
    refused = machine.run("hl-smi", "--query-row-replacement", "uuid,rows", "-f", "csv")
    assert (refused.code, refused.out) == (1, "")


def test_options_that_public_tools_use_are_there(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[0][0]
    header = machine.ok("hl-smi", "--query-aip=Name,driver_version", "--format=csv,nounits").lines[0]
    assert header == "name, driver_version"
    assert machine.ok("hl-smi", "-D", "-Q", "name", "-f", "csv,noheader").lines == ["HL-325L"] * 8
    # The vendor's collector of logs looks for this line and reads the file that it names.
    console = next(line for line in machine.ok("hl-smi", "dmon", "-i", bus_id).lines if "ARC1" in line)
    assert Path(console.split(":")[1]).exists()


@pytest.mark.parametrize(("release", "there"), [("1.23.0-695", False), ("1.24.0-1007", True), ("1.24.2-481", True)])
def test_a_field_comes_with_its_release(machine: Machine, release: str, there: bool) -> None:
    result = machine.run("hl-smi", "-Q", "ecc.errors.hbm.sram.critical", "-f", "csv,noheader", release=release)
    assert result.code == (0 if there else 1)
    assert result.out == ("0\n" * 8 if there else "")


@pytest.mark.parametrize(
    "arguments", [("topo",), ("topo", "-x"), ("dmon",), ("dmon", "-i"), ("-Q", "NAME", "-f", "csv")]
)
def test_what_no_source_shows_is_refused(machine: Machine, arguments: tuple[str, ...]) -> None:
    result = machine.run("hl-smi", *arguments)
    assert (result.code, result.out) == (1, "")
