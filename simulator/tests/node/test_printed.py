"""Every text that the node's tools print stands in ``simulator/printed.yml`` with its source, and the product relies on
none that has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from simulated_machine import Machine

from gaudi3_simulator.node import releases
from gaudi3_simulator.vendor.catalogue import packages

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "simulator" / "printed.yml"
PRODUCT = (
    "roles",
    "plugins",
    "playbooks",
    "trainer/src",
    "benchmark-tool/src",
    "doctor/src",
    "migration/src",
    "watch/src",
)
# The health engine names texts and counters that nobody has confirmed, to know them where they are. A text that it does
# not know is an unknown event, and a counter that is not there is no finding.
KNOWS_OF = ("plugins/module_utils/_health", "plugins/module_utils/_module_bodies/certificate.py")
"""Both judge nothing where the words are missing: a certificate has no grade then."""
UNCONFIRMED = "unconfirmed"
# What stands for a value in a row's text. White space counts once, however much of it there is.
PARTS = {
    "<n>": r"-?\d+",
    "<hex>": r"[0-9a-f]+",
    "<bdf>": r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d",
    "<mac>": r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    "<v>": r"[\w.+-]+",
    "<date>": r"\w{3} \d\d \d{4} - \d\d:\d\d:\d\d",
    "<time>": r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}",
    "<uuid>": r"[\w]{4}-\w+-\d\d-\w{6}-\d\d-\d\d-\d\d",
    "<cells>": r"\S+(?: \S+)*",
    "<text>": r".*",
}
RELEASES = ["1.18.0-524", "1.20.1-97", "1.23.0-695", "1.24.2-481"]


class Row(NamedTuple):
    """One row of the table."""

    tool: str
    text: str
    source: str
    release: str = "any"
    words: tuple[str, ...] = ()

    @property
    def expression(self) -> re.Pattern[str]:
        text = re.escape(" ".join(self.text.split()))
        for part, meaning in PARTS.items():
            text = text.replace(re.escape(part), meaning)
        return re.compile(text)


def rows() -> list[Row]:
    return [Row(**{**row, "words": tuple(row.get("words", ()))}) for row in yaml.safe_load(TABLE.read_text())]


def plain(line: str) -> str:
    return " ".join(line.split())


def said(machine: Machine, tool: str, *arguments: str, release: str = "1.23.0-695") -> Iterator[tuple[str, str]]:
    result = machine.run(tool, *arguments, release=release)
    for line in (result.out + result.err).splitlines():
        if line.strip():
            yield tool, plain(line)


def everything(bare: Callable[..., Machine], release: str, board: str) -> set[tuple[str, str]]:
    """What all tools print on one node, in good days and bad."""
    found: set[tuple[str, str]] = set()

    def ask(tool: str, *arguments: str) -> None:
        found.update(said(machine, tool, *arguments, release=release))

    def ask_all() -> None:
        for arguments in ((), ("-L",), ("-Q", fields, "-f", "csv"), ("-Q", fields, "-f", "csv,noheader,nounits"),
                          ("topo", "-c", "-N"), ("topo", "-N"), ("dmon", "-i", bus_id), ("--fw-versions",), ("-v",),
                          ("--query-row-replacement", "uuid,replaced_rows.address,replaced_rows.cause"),
                          *(("-n", name, "-i", bus_id) for name in ("ports", "link", "stats"))):  # fmt: skip
            ask("hl-smi", *arguments)
        for tool in ("lsmod", "dmesg"):
            ask(tool, *(("-t",) if tool == "dmesg" else ()))
        for operation in ("--status", "--check-pfc"):
            ask("manage_network_ifs.sh", operation)

    machine = bare(f"{board}-{release}", 2, board=board)
    ask("modprobe", "habanalabs")
    ask("modinfo", "habanalabs")
    ask("hl-smi")
    machine.install(release)
    ask("hl-fw-loader", "-s")
    ask("hl-fw-loader", "-y")
    ask("modprobe", "habanalabs_ib")
    machine.load()
    from gaudi3_simulator.node import hl_smi_csv

    wanted = tuple(int(number) for number in release.partition("-")[0].split("."))
    known = [name for name in hl_smi_csv.FIELDS if wanted >= hl_smi_csv.SINCE.get(name, ())]
    fields, bus_id = ",".join(known), machine.csv("bus_id")[0][0]
    ask_all()
    machine.hold(1, mib=2048)
    ask("manage_network_ifs.sh", "--up")
    ask("manage_network_ifs.sh", "--set-pfc")
    for kind in ("card-in-reset", "ecc-uncorrected", "pcie-width", "port-down"):
        machine.ok("node", "fault", kind, "--card", "0")
    ask_all()
    ask("hl-smi", "-r", "-i", bus_id)
    for kind in ("temperature-absurd", "pcie-generation", "throttled-power", "throttled-thermal", "ecc-corrected",
                 "row-pending", "memory-kept", "spi-release", "port-flapping", "port-symbol-errors", "mac-timeout",
                 "bad-pagetable", "firmware-skew", "kernel-event"):  # fmt: skip
        machine.ok("node", "fault", kind, *(("--card", "0") if kind != "bad-pagetable" else ()))
    ask_all()
    machine.ok("node", "fault", "--clear-all")
    for kind in ("needs-reset", "in-device-creation", "reset-failed", "cpu-timeout"):
        machine.ok("node", "fault", kind, "--card", "0")
        ask("hl-smi", "-L")
        ask("hl-smi", "-r", "-i", bus_id)
    ask_all()
    machine.ok("node", "fault", "--clear-all")
    machine.ok("node", "fault", "no-firmware")
    for arguments in (("-r", "habanalabs_cn"), ("-v", "-r", "habanalabs_en"), ("habanalabs", "huge_pages=1"),
                      ("-v", "habanalabs_en"), ("--first-time", "habanalabs_en"),
                      ("--wrong", "habanalabs")):  # fmt: skip
        ask("modprobe", *arguments)
    for name in ("habanalabs_compat", "habanalabs_cn", "br_netfilter", "ib_uverbs"):
        ask("rmmod", name)
    for name in ("habanalabs", "habanalabs_compat", "habanalabs_en", "nothing"):
        ask("modinfo", name)
    machine.ok("node", "fault", "module-rejected")
    ask("rmmod", "habanalabs_ib")
    ask("modprobe", "habanalabs_ib")
    machine.ok("node", "fault", "card-missing", "--card", "0")
    ask_all()
    for arguments in (("--json",), ("-Q", "x", "-f", "csv"), ("-p", "1", "-i", bus_id), ("-n", "ports"),
                      ("-i", "x"), ("dmon",), ("topo",), ("-q", "-d", "CPU"), ("-l", "0")):  # fmt: skip
        ask("hl-smi", *arguments)
    machine.as_user(1000)
    for tool, argument in (("modprobe", "habanalabs"), ("rmmod", "habanalabs_ib"), ("hl-fw-loader", "-s"),
                           ("manage_network_ifs.sh", "--up")):  # fmt: skip
        ask(tool, argument)
    machine.close()
    return found


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return rows()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("board", ["HL-325L", "HL-225"])
def test_every_line_stands_in_the_table(
    bare: Callable[..., Machine], table: list[Row], release: str, board: str
) -> None:
    by_tool: dict[str, list[re.Pattern[str]]] = {}
    for row in table:
        by_tool.setdefault(row.tool, []).append(row.expression)
    unknown = [
        f"{tool}: {line}"
        for tool, line in sorted(everything(bare, release, board))
        if not any(each.fullmatch(line) for each in by_tool.get(tool, ()))
    ]
    assert unknown == []


def test_an_invented_line_is_found_out(table: list[Row]) -> None:
    """The rows' placeholders are not so wide that anything passes."""
    for tool, line in {
        "hl-smi": "Firmware [BMC] Version : 1.2.3", "dmesg": "habanalabs: unloading driver",
        "lsmod": "habanalabs_new 4096 0", "manage_network_ifs.sh": "accel0 is fine",
    }.items():  # fmt: skip
        assert not any(row.expression.fullmatch(line) for row in table if row.tool == tool), line
    wide = [
        row.text
        for row in table
        if row.expression.fullmatch("an invented line") and not row.source.startswith("simulator")
    ]
    assert wide == []


def test_every_row_has_a_source_and_a_name_to_look_for() -> None:
    for row in rows():
        assert row.source.strip(), row
        assert not row.source.startswith(UNCONFIRMED) or row.words, (
            f"{row.text}: name the words that a reader would use"
        )


@pytest.mark.parametrize("release", releases.RELEASES)
def test_each_version_that_was_seen_has_its_source(table: list[Row], release: str) -> None:
    info = releases.release_info(release)
    listed = {row.text for row in table if row.tool == "versions" and row.release == release}
    assert listed == {getattr(info, part) for part in releases.seen(release)}
    assert not any(row.source.startswith(UNCONFIRMED) for row in table if row.tool == "versions")


def test_each_preboot_of_a_gaudi_2_has_its_source(table: list[Row]) -> None:
    assert {row.release: row.text for row in table if row.tool == "firmware"} == releases.PREBOOT_GAUDI2


def test_the_profile_files_are_listed(table: list[Row]) -> None:
    lines = [
        line
        for package in packages("1.23.0-695")
        for path, file in package.files.items()
        if path.startswith("/etc/profile.d/")
        for line in file.text.splitlines()
    ]
    assert sorted(lines) == sorted(row.text for row in table if row.tool == "profile")


def product() -> Iterator[tuple[Path, str]]:
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*")):
            if any(path.is_relative_to(ROOT / each) for each in KNOWS_OF):
                continue
            if path.suffix in (".py", ".yml", ".j2", ".sh", ".json") and path.is_file():
                yield path, path.read_text()


def test_the_product_relies_on_nothing_unconfirmed(table: list[Row]) -> None:
    words = {word: row for row in table if row.source.startswith(UNCONFIRMED) for word in row.words}
    used = [
        f"{path.relative_to(ROOT)}: {word!r} ({row.source})"
        for path, text in product()
        for word, row in words.items()
        if word in text
    ]
    assert used == []
