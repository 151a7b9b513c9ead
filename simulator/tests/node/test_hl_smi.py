"""hl-smi's own forms: options, fields, units, errors."""

from __future__ import annotations

from simulated_machine import Machine

HEADER_FIELDS = "name,uuid,power.draw,temperature.aip,utilization.aip,memory.used,memory.total"
EVERY_FIELD = {
    "timestamp": "Tue Nov 14 22:13:20 UTC 2023",
    "name": "HL-325L",
    "driver_version": "1.23.0-2eae87a",
    "index": "0",
    "utilization.aip [%]": "0 %",
    "utilization.memory [%]": "0 %",
    "memory.total [MiB]": "131072 MiB",
    "memory.free [MiB]": "130400 MiB",
    "memory.used [MiB]": "672 MiB",
    "power.max [W]": "850 W",
    "ecc.mode.current": "Enabled",
    "ecc.mode.pending": "Enabled",
    "ecc.errors.uncorrected.aggregate.total": "0",
    "ecc.errors.uncorrected.volatile.total": "0",
    "ecc.errors.corrected.aggregate.total": "0",
    "ecc.errors.corrected.volatile.total": "0",
    "ecc.errors.dram.aggregate.total": "0",
    "ecc.errors.dram.volatile.total": "0",
    "ecc.errors.dram-corrected.aggregate.total": "0",
    "ecc.errors.dram-corrected.volatile.total": "0",
    "stats.violation.power": "0",
    "stats.violation.thermal": "0",
    "clocks.current.soc [MHz]": "1600 MHz",
    "clocks.max.soc [MHz]": "1600 MHz",
    "clocks.limit.soc [MHz]": "1600 MHz",
    "clocks.limit.tpc [MHz]": "1750 MHz",
    "pcie.link.gen.max": "Gen5",
    "pcie.link.gen.current": "Gen5",
    "pcie.link.width.max": "x16",
    "pcie.link.width.current": "x16",
    "pcie.link.speed.max": "32GT/s",
    "pcie.link.speed.current": "32GT/s",
}


def test_header_keeps_units_without_units(machine: Machine) -> None:
    lines = machine.ok("hl-smi", "-Q", HEADER_FIELDS, "-f", "csv,nounits").lines
    assert lines[0] == (
        "name, uuid, power.draw [W], temperature.aip [C], utilization.aip [%], memory.used [MiB], memory.total [MiB]"
    )
    cells = lines[1].split(", ")
    assert (cells[0], cells[4], cells[5], cells[6]) == ("HL-325L", "0", "672", "131072")
    assert cells[2].isdigit()


def test_every_documented_field_has_its_unit(machine: Machine) -> None:
    names = ",".join(title.partition(" [")[0] for title in EVERY_FIELD)
    header, *rows = machine.ok("hl-smi", "-Q", names, "-f", "csv").lines
    cells = [dict(zip(header.split(", "), row.split(", "), strict=True)) for row in rows]
    assert next(row for row in cells if row["index"] == "0") == EVERY_FIELD


def test_identity_fields_agree_with_sysfs(machine: Machine) -> None:
    for index, module_id, bus_id in machine.csv("index,module_id,bus_id"):
        device = f"/sys/class/accel/accel{index}/device"
        assert machine.read(f"{device}/module_id") == module_id
        assert machine.read(f"{device}/pci_addr") == bus_id
        assert machine.path(device).resolve() == machine.path(f"/sys/bus/pci/devices/{bus_id}").resolve()


def test_one_card_is_chosen_by_its_full_address(machine: Machine) -> None:
    index, bus_id = machine.csv("index,bus_id")[3]
    assert machine.csv("index", "-i", bus_id.upper()) == [[index]]
    wrong = machine.run("hl-smi", "-Q", "index", "-f", "csv", "-i", bus_id[5:])
    assert wrong.code == 1
    assert wrong.err.startswith(f"hl-smi: no card at '{bus_id[5:]}': the cards are at 0000:")


def test_new_table_is_exact(machine: Machine) -> None:
    lines = machine.ok("hl-smi").lines
    bus_id, temperature, draw = machine.csv("bus_id,temperature.aip,power.draw")[0]
    power = int(draw) + 22  # the 12 V rail, which the csv leaves out
    assert {len(line) for line in lines} == {79}
    assert lines[:8] == [
        "+-----------------------------------------------------------------------------+",
        "| HL-SMI Version:                              hl-1.23.0-fw-62.2.1.1          |",
        "| Driver Version:                                     1.23.0-2eae87a          |",
        "| Nic Driver Version:                                 1.23.0-2eae87a          |",
        "|-------------------------------+----------------------+----------------------+",
        "| AIP  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncor-Events|",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |",
        "|===============================+======================+======================|",
    ]
    assert lines[8:10] == [
        f"|   0  HL-325L             N/A  | {bus_id}     N/A |                   0  |",
        f"| N/A   {temperature}C   P0  {power}W /  850W  |   672MiB / 131072MiB |     0%            0% |",
    ]
    assert lines[-2:] == [
        "|   7        N/A   N/A    N/A                                      N/A        |",
        "+=============================================================================+",
    ]


def test_power_cap_follows_the_running_driver(machine: Machine) -> None:
    machine.install("1.21.0-555")
    machine.reboot()
    assert machine.csv("driver_version,power.max")[0][1] == "900"


def test_tool_and_driver_may_be_of_different_releases(machine: Machine) -> None:
    lines = machine.ok("hl-smi", release="1.22.0-740").lines
    assert "hl-1.22.0-fw-61.3.2.0-sim " in lines[1]
    assert "1.23.0-2eae87a" in lines[2]


def test_log_is_limited_to_sections(machine: Machine) -> None:
    log = machine.ok("hl-smi", "-q", "-d", "MEMORY", "-i", machine.csv("bus_id")[0][0]).lines
    assert log[-6:-1] == [
        "\tMemory Type                     : HBM",
        "\tMemory Usage",
        "\t\tTotal                   : 131072 MB",
        "\t\tUsed                    : 672 MB",
        "\t\tFree                    : 130400 MB",
    ]
    assert len(log) == 16


def test_log_lists_cards_and_addresses(machine: Machine) -> None:
    log = machine.ok("hl-smi", "-q").lines
    assert log[:2] == ["", "================ HL-SMI LOG ================"]
    assert log[3] == "Timestamp                               : Tue Nov 14 22:13:20 UTC 2023"
    assert log[4] == "Driver Version                          : 1.23.0-2eae87a"
    assert "Attached AIPs                           : 8" in log
    macs = [line.split(" : ")[1].strip() for line in log if "] MAC " in line]
    assert len(macs) == len(set(macs)) == 8 * 24


def test_wrong_usage_is_told_and_fails(machine: Machine) -> None:
    for arguments, message in {
        ("--json",): "hl-smi: unknown option '--json': see hl-smi -h",
        ("--query-gpu=index",): "hl-smi: unknown option '--query-gpu=index': see hl-smi -h",
        ("-Q", "index,energy", "-f", "csv"): "hl-smi: unknown field 'energy' in -Q: the fields are timestamp,",
        ("-Q", "index", "-f", "json"): "hl-smi: unknown format 'json': give csv[,noheader][,nounits]",
        ("-n", "ports"): "hl-smi: -n needs one card: name it by its PCI address, such as -i 0000:19:00.0",
        ("-n", "speed", "-i", "x"): "hl-smi: unknown network view 'speed': the views are ports, link, stats",
        ("-q", "-d", "CPU"): "hl-smi: unknown section 'CPU' in -d: the sections are PRODUCT,",
        ("-Q",): "hl-smi: option '-Q' needs a value: see hl-smi -h",
        ("dmon",): "hl-smi: dmon needs one card: name it by its PCI address, such as dmon -i 0000:19:00.0",
        ("topo",): "hl-smi: topo shows processors with -c and memory with -N: give one or both",
        ("-l", "0"): "hl-smi: '0' is no number of seconds: give one above 0, such as -l 5",
    }.items():
        result = machine.run("hl-smi", *arguments)
        assert (result.code, result.out) == (1, ""), arguments
        assert result.err.startswith(message), result.err


def test_power_limit_can_be_set_within_the_documented_range(machine: Machine) -> None:
    bus_id = machine.csv("bus_id")[2][0]
    machine.ok("hl-smi", "-p", "600", "-i", bus_id)
    assert [cells[0] for cells in machine.csv("power.max")] == ["850", "850", "600"] + ["850"] * 5
    refused = machine.run("hl-smi", "-p", "449", "-i", bus_id)
    assert refused.err == "hl-smi: '449' is no power limit of this card: give 450 to 850 watts\n"
    machine.as_user(1000)
    assert machine.run("hl-smi", "-p", "500", "-i", bus_id).err == "hl-smi: changing a card needs root\n"


def test_help_says_that_it_is_a_simulator(machine: Machine) -> None:
    assert machine.ok("hl-smi", "-h").lines[0] == "hl-smi, simulated: no Gaudi card was asked (gaudi3.scale simulator)"
