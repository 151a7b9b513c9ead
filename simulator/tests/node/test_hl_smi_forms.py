"""hl-smi's forms against public transcripts, column by column and label by label."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated_machine import Machine

TRANSCRIPTS = Path(__file__).with_name("transcripts")
# Where cells end: separators, units, and words that stand for a missing value.
ANCHOR = re.compile(r"[|/]|(?<=\d)(?:MiB|[CW%])|(?<= )(?:N/A|P0)")
TABLES = [
    ("table-1.15.1-gaudi2.txt", "1.15.1-15", "HL-225"),
    ("table-1.17.1-gaudi2.txt", "1.17.1-40", "HL-225"),
    ("table-1.18.0-gaudi3.txt", "1.18.0-524", "HL-325L"),
    ("table-1.21.0-gaudi3.txt", "1.21.0-555", "HL-325L"),
    ("table-1.22.1-gaudi2.txt", "1.22.1-6", "HL-225"),
    ("table-1.23.0-gaudi2e.txt", "1.23.0-695", "HL-225"),
]


def transcript(name: str) -> list[str]:
    return (TRANSCRIPTS / name).read_text().splitlines()


def anchors(line: str) -> list[tuple[int, str]]:
    return [(match.end(), match.group()) for match in ANCHOR.finditer(line)]


def on(bare: Callable[..., Machine], release: str, board: str = "HL-325L", cards: int = 2) -> Machine:
    machine = bare(cards=cards, board=board)
    machine.install(release)
    machine.load()
    return machine


@pytest.mark.parametrize(("name", "release", "board"), TABLES)
def test_the_table_has_the_columns_of_its_release(
    bare: Callable[..., Machine], name: str, release: str, board: str
) -> None:
    genuine = transcript(name)
    first = next(number for number, line in enumerate(genuine) if line.startswith("|===")) + 1
    shown = on(bare, release, board).ok("hl-smi", release=release).lines
    headings = [line for line in genuine[:first] if "Version:" not in line]
    assert [line for line in shown[:first] if "Version:" not in line] == headings
    assert shown[1] == genuine[1]
    for number in (first, first + 1):
        assert anchors(shown[number]) == anchors(genuine[number]), shown[number]
        assert len(shown[number]) == len(genuine[number])
    assert shown[first + 2] == genuine[first + 2]


@pytest.mark.parametrize(
    ("name", "release"), [("table-1.20.0.txt", "1.20.0-543"), ("table-1.15.1-gaudi2.txt", "1.15.1-15"),
                          ("table-1.17.1-gaudi2.txt", "1.17.1-40"), ("table-1.18.0-gaudi3.txt", "1.18.0-524"),
                          ("table-1.22.1-gaudi2.txt", "1.22.1-6"), ("table-1.23.0-gaudi2e.txt", "1.23.0-695")]
)  # fmt: skip
def test_the_heading_names_the_versions_of_its_release(bare: Callable[..., Machine], name: str, release: str) -> None:
    genuine = [line for line in transcript(name) if "Version:" in line]
    shown = on(bare, release).ok("hl-smi", release=release).lines
    assert [line for line in shown if "Version:" in line] == genuine


def test_the_processes_table_is_that_of_the_transcript(machine: Machine) -> None:
    genuine = transcript("table-1.15.1-gaudi2.txt")
    start = next(number for number, line in enumerate(genuine) if "Compute Processes" in line)
    shown = machine.ok("hl-smi").lines
    begin = next(number for number, line in enumerate(shown) if "Compute Processes" in line)
    assert shown[begin : begin + 4] == genuine[start : start + 4]
    assert shown[-1] == genuine[-1]


@pytest.mark.parametrize("board", ["HL-225", "HL-325L"])
@pytest.mark.parametrize("flags", [("-L",), ("-q",)])
def test_the_log_has_the_labels_of_the_transcript(
    bare: Callable[..., Machine], flags: tuple[str, ...], board: str
) -> None:
    machine = on(bare, "1.23.0-695", board, cards=3)
    shown = machine.ok("hl-smi", *flags, "-i", machine.csv("bus_id")[0][0]).lines

    def labels(lines: list[str]) -> list[str]:
        """Everything before the values, the colon's column included; no more than two hardware addresses."""
        kept = [line.expandtabs() for line in lines if "] MAC " not in line or "[ 1]" in line or "[ 2]" in line]
        plain = [line[:41] if line[40:41] == ":" else line for line in kept]
        return ["[0] AIP (accel0)" if line.startswith("[0] AIP") else line for line in plain if line]

    assert labels(shown) == labels(transcript("log-1.12.1-gaudi2.txt"))


def test_values_of_the_log_have_the_form_of_the_transcript(bare: Callable[..., Machine]) -> None:
    machine = on(bare, "1.23.0-695", "HL-225")
    shown = machine.ok("hl-smi", "-L", "-i", machine.csv("bus_id")[0][0]).lines
    forms = {
        "Firmware [FIT] Version": r"Linux gaudi2 5\.10\.18-\S+ #1 SMP PREEMPT \w{3} \w{3} [ \d]\d \S{8} \w+ \d{4} "
        r"aarch64 GNU/Linux",
        "Firmware [SPI] Version": r"Preboot version hl-gaudi2-\S+ \(\w{3} \d\d \d{4} - \d\d:\d\d:\d\d\)",
        "Firmware [UBOOT] Version": r"U-Boot 2021\.04-\S+ \(\w{3} \d\d \d{4} - \d\d:\d\d:\d\d [+-]\d{4}\) build#: \d+",
        "Firmware [OS] Version": r"Zephyr 2\.7\.2-\S+ \(\w{3} \d\d \d{4} - \d\d:\d\d:\d\d\)",
        "CPLD Version": r"0x[0-9a-f]{8}",
    }
    for lines in (shown, transcript("log-1.12.1-gaudi2.txt")):
        found = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
        for label, form in forms.items():
            value = next(value for name, value in found.items() if name.strip() == label)
            assert re.fullmatch(form, value), (label, value)


@pytest.mark.parametrize("cards", [1, 3, 8])
def test_attached_cards_are_the_machines(bare: Callable[..., Machine], cards: int) -> None:
    machine = on(bare, "1.23.0-695", cards=cards)
    for arguments in ((), ("-i", machine.csv("bus_id")[0][0])):
        assert f"Attached AIPs                           : {cards}" in machine.ok("hl-smi", "-q", *arguments).lines


def test_topology_has_the_form_of_the_sample(bare: Callable[..., Machine]) -> None:
    machine = on(bare, "1.23.0-695", cards=8)
    near = {"0": "0-39,80-119", "1": "40-79,120-159"}
    modules = {}
    for bus_id, module_id in machine.csv("bus_id,module_id"):
        folder = f"/sys/bus/pci/devices/{bus_id}"
        modules[module_id] = machine.read(f"{folder}/numa_node")
        machine.write(f"{folder}/local_cpulist", near[modules[module_id]] + "\n")
    shown = machine.ok("hl-smi", "topo", "-c", "-N").lines
    genuine = transcript("topo-gaudi2.txt")
    assert [line.split() for line in shown[:2]] == [line.split() for line in genuine[:2]]
    assert [line.expandtabs()[:8] + line.expandtabs()[8:].rstrip() for line in shown[:2]] == [
        line.rstrip() for line in genuine[:2]
    ]
    # vLLM's start scripts take the second and the fourth word of the line that begins with a module's number.
    rows = {line.split()[0]: line.split() for line in shown[2:]}
    assert list(rows) == [str(number) for number in range(8)]
    for module_id, words in rows.items():
        assert words[3] == modules[module_id]
        assert f"{words[1]}{words[2]}" == near[modules[module_id]]
    # PerfSpect's expression asks for white space at the end of the line.
    alone = machine.ok("hl-smi", "topo", "-N").out
    assert re.findall(r"^(\d+)\s+(\d+)\s+$", alone.replace("\n", " \n"), re.MULTILINE)
    assert [re.fullmatch(r"(\d+)\s+(\d+)\s+", line) is not None for line in alone.splitlines()[2:]] == [True] * 8


def test_perfspect_finds_the_parts_of_the_firmware(machine: Machine) -> None:
    for option in ("--fw-version", "--fw-versions"):
        found: list[tuple[str, str]] = []
        part = ""
        for line in machine.ok("hl-smi", option).lines:
            component = re.match(
                r"^\s+component\s+:\s+(?:hl-gaudi\d-(.*)-sec-\d+|(0x[0-9a-fA-F]+\.[0-9a-fA-F]+)$)", line
            )
            if re.search(r"\s+(erom|cpld|preboot)$", line):
                part = line.split()[-1]
            elif component:
                found.append((part, component[1] or component[2]))
        assert [name for name, _ in found] == ["erom", "cpld", "preboot"] * 8
        assert {value for name, value in found if name == "preboot"} == {"1.23.0-fw-62.2.1"}
        assert (
            len([line for line in machine.ok("hl-smi", option).lines if re.match(r"^\[\d\] AIP \(accel\d\) ", line)])
            == 8
        )


def test_counters_are_whole_numbers_of_internal_ports(machine: Machine) -> None:
    """A public monitor makes an integer of each value and strips blanks and brackets from the names."""
    bus_id = machine.csv("bus_id")[0][0]
    linked = {int(line[5:7]) for line in machine.ok("hl-smi", "-n", "link", "-i", bus_id).lines}
    ports: dict[int, dict[str, int]] = {}
    current = -1
    for line in machine.ok("hl-smi", "-n", "stats", "-i", bus_id).lines:
        if "port" in line:
            current = int("".join(re.findall(r"\d+", line)))
            ports[current] = {}
        else:
            name, value = line.split(":")
            ports[current][name.strip().replace(" ", "_").replace("(", "").replace(")", "")] = int(value.strip())
    assert set(ports) == linked
    wanted = {"pcs_local_faults", "pcs_remote_faults", "pre_FEC_SER_int", "pre_FEC_SER_exp_negative",
              "post_FEC_SER_int",
              "post_FEC_SER_exp_negative", "cw_corrected_accum", "cw_uncorrect_accum", "symbol_err_corrected_lane_3",
              "Congestion_Q_err", "OctetsReceivedOK", "aFramesTransmittedOK", "bandwidth_gbps_int"}  # fmt: skip
    assert all(wanted <= set(counters) for counters in ports.values())
