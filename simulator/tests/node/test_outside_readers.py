"""Programs of other people read hl-smi: each reader, written anew from its rule, has to be satisfied."""

from __future__ import annotations

import re

import pytest
from simulated_machine import Machine

FIELDS = "index,module_id,bus_id,memory.used,temperature.aip,name"


def test_health_screener_finds_six_cells_per_card(machine: Machine) -> None:
    rows = []
    for line in machine.ok("hl-smi", "-Q", FIELDS, "-f", "csv,noheader").out.split("\n"):
        if line:
            cells = line.split(",")
            assert len(cells) == 6
            rows.append((int(cells[0]), int(cells[1]), int(cells[3].split()[0]), int(cells[4].split()[0])))
    assert sorted(row[0] for row in rows) == list(range(8))
    assert sorted(row[1] for row in rows) == list(range(8))
    assert {row[2] for row in rows} == {672}
    assert all(30 < row[3] <= 45 for row in rows)


def test_health_screener_reads_port_types(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[0][0]
    types = {}
    for line in machine.ok("hl-smi", "-n", "ports", "-i", bus_id).lines:
        number, kind = line.split(":")
        types[int(number.split()[1])] = kind.strip()
    assert sorted(types) == list(range(24))
    assert sorted(types.values()) == ["external"] * 3 + ["internal"] * 21


def test_vllm_row_pattern_finds_every_card(machine: Machine) -> None:
    pattern = re.compile(r"^\|\s*(\d+)\s+([A-Z0-9-]+)\s+N/A\s+\|\s*([0-9a-fA-F:.]+)\s+N/A\s*\|")
    found = [pattern.match(line) for line in machine.ok("hl-smi").lines]
    rows = [match.groups() for match in found if match]
    assert rows == [(index, "HL-325L", bus_id) for index, bus_id in machine.csv("index,bus_id")]


@pytest.mark.parametrize("tool_release", ["1.18.0-524", "1.23.0-695"])
def test_third_line_of_the_table_holds_the_driver_version(machine: Machine, tool_release: str) -> None:
    output = machine.ok("hl-smi", release=tool_release).out
    assert output.split("\n")[2].replace(" ", "").split(":")[1][:-1] == "1.23.0-2eae87a"


def test_lightning_finds_the_word_and_both_versions(machine: Machine) -> None:
    output = machine.ok("hl-smi", "-v").out
    assert "Habana" in output
    assert re.findall(r"hl-([\d.]+)", output) == ["1.23.0"]
    assert re.findall(r"fw-([\d.]+)", output) == ["62.2.1.1"]


def test_all_smi_reads_eleven_cells_with_units(machine: Machine) -> None:
    fields = (
        "index,uuid,name,driver_version,memory.total,memory.used,memory.free,power.draw,power.max,"
        "temperature.aip,utilization.aip"
    )
    lines = machine.ok("hl-smi", "-Q", fields, "-f", "csv,noheader").lines
    assert len(lines) == 8
    assert re.fullmatch(
        r"\d, 01P4-HL3090A0-18-[A-Z]{3}\d{3}-\d\d-\d\d-\d\d, HL-325L, 1\.23\.0-2eae87a, 131072 MiB, 672 MiB, "
        r"130400 MiB, 2\d\d W, 850 W, 3\d C, 0 %",
        lines[0],
    )


def test_spi_firmware_is_found_in_the_log(machine: Machine) -> None:
    found = [line for line in machine.ok("hl-smi", "-L").lines if "SPI" in line]
    assert len(found) == 8
    assert found[0].startswith(
        "\tFirmware [SPI] Version          : Preboot version hl-gaudi3-1.23.0-fw-62.2.1-sec-9-sim ("
    )


def test_hccl_demo_takes_exit_code_1_for_no_driver(machine: Machine) -> None:
    for name in ("ib", "en", "cn"):
        machine.ok("modprobe", "-r", f"habanalabs_{name}")
    machine.ok("modprobe", "-r", "habanalabs")
    for arguments in ((), ("-L",), ("-Q", "index", "-f", "csv"), ("-n", "ports", "-i", "0000:19:00.0")):
        result = machine.run("hl-smi", *arguments)
        assert (result.code, result.out) == (1, "")
        assert "driver is not up" in result.err


def test_optimum_switches_the_console_on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_CONSOLE", "false")
    assert machine.ok("hl-smi").out == ""
    monkeypatch.setenv("ENABLE_CONSOLE", "true")
    assert "HL-SMI Version" in machine.ok("hl-smi").out
