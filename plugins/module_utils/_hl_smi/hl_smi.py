# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What hl-smi prints, as data. Pure functions over text: nothing here starts a process.

The tool has no JSON output, so three of its texts are read: the csv of ``-Q``, the detail log of ``-L`` and
the port lists of ``-n``. A cell which the tool gives as ``N/A`` becomes None. The cells that name a card must be
readable; any other cell that cannot be read becomes None and is reported. Text of another shape is an error which
quotes the first line that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

QUERY_FIELDS = (
    "index", "module_id", "bus_id", "name", "uuid", "serial", "driver_version", "nic_driver_version",
    "memory.total", "memory.used", "memory.free", "power.draw", "power.max", "temperature.aip",
    "utilization.aip", "utilization.memory",
    "ecc.mode.current", "ecc.mode.pending",
    "ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.aggregate.total",
    "ecc.errors.corrected.volatile.total", "ecc.errors.corrected.aggregate.total",
    "ecc.errors.dram.volatile.total", "ecc.errors.dram.aggregate.total",
    "ecc.errors.dram-corrected.volatile.total", "ecc.errors.dram-corrected.aggregate.total",
    "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max",
    "pcie.link.speed.current", "pcie.link.speed.max",
    "clocks.current.soc", "clocks.max.soc", "clocks.limit.soc", "clocks.limit.tpc",
    "stats.violation.power", "stats.violation.thermal",
)  # fmt: skip

# Not in the vendor's list of fields, but read by a public tool: asked for, and given up when refused.
UNCONFIRMED_FIELDS = ("power.max",)

#: Of each row of memory that was replaced.
ROW_FIELDS = ("uuid", "replaced_rows.address", "replaced_rows.cause")

# The cells that name a card, and how they look.
MANDATORY_FIELDS = {
    "index": re.compile(r"\d+"),
    "bus_id": re.compile(r"[0-9a-fA-F]{4,}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"),
    "module_id": re.compile(r"\d+"),
}

# A public monitor strips Gen, x and GT/s from the PCIe cells, so some release prints them.
_UNIT = r"\s*(?:MiB|MB|W|C|%|MHz|GT/s)?"
_NUMBER = re.compile(rf"^(?:x|Gen ?)?(-?\d{{1,18}})(?:\.\d+)?{_UNIT}$")
_NONE = re.compile(rf"^(?:N/A{_UNIT})?$")
_POWER = re.compile(r"^Power Readings \((\d+V) PSU\)$")
_CARD = re.compile(r"^\[\s*\d+\] AIP \((accel\d+)\) ([0-9a-fA-F:.]+)\s*$")
_FIRMWARE = re.compile(r"^(?:Firmware \[(\w+)\]|(CPLD)) Version$")
_FIRMWARE_NAME = re.compile(r"hl-gaudi\d?-[\w.]+-fw-[\w.-]+")
_PORT = re.compile(r"^port\s+(\d{1,6})\s*:\s*(\S+)\s*$")
_PORT_HEAD = re.compile(r"^port\s+(\d{1,6})\s*:$")


class HlSmiError(Exception):
    """The text is not what the tool is known to print. The message is one sentence."""


@dataclass(frozen=True)
class OddCell:
    """A cell that cannot be read, and of which card."""

    field: str
    bus_id: str
    cell: str


@dataclass(frozen=True)
class CardLog:
    """What the detail log adds to a card's csv row; ``power`` has the cell of each rail (``54v``, ``12v``)."""

    device: str
    bus_id: str
    status: str | None = None
    model: str | None = None
    firmware: dict[str, str] = field(default_factory=dict)
    power: dict[str, str] = field(default_factory=dict)
    rows_pending: str | None = None


@dataclass(frozen=True)
class Log:
    """The detail log of every card (``hl-smi -L``)."""

    driver_version: str | None
    hl_smi_version: str | None
    cards: dict[str, CardLog]


@dataclass(frozen=True)
class Port:
    """One network port of a card; what was not asked for is None. ``counters`` are cells under the tool's own names."""

    port: int
    type: str
    link: str | None = None
    counters: dict[str, str] | None = None


def quote(line: str, limit: int = 80) -> str:
    """A line of a tool's output, short enough to stand in a sentence."""
    line = " ".join(line.split())
    return repr(line if len(line) <= limit else line[: limit - 3] + "...")


def text(cell: str | None) -> str | None:
    """A cell's text, or None where the tool has no value."""
    return None if cell is None or _NONE.match(cell) else cell


def number(cell: str | None, name: str) -> int | None:
    """A cell's whole number, with or without a unit (``672 MiB``, ``x16``), or None without a value."""
    cell = text(cell)
    if cell is None:
        return None
    match = _NUMBER.match(cell)
    if not match:
        raise HlSmiError(f"field {name} is {quote(cell)} where a number was expected")
    return int(match.group(1))


def read_number(cell: str | None, name: str, bus_id: str, odd: list[OddCell]) -> int | None:
    """A cell's whole number; one that cannot be read is None and goes into ``odd``."""
    try:
        return number(cell, name)
    except HlSmiError:
        odd.append(OddCell(name, bus_id, cell or ""))
        return None


def parse_csv(output: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of ``-Q FIELDS -f csv,noheader,nounits``, each as field name to cell."""
    rows = []
    for line in output.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields):
            raise HlSmiError(f"{quote(line)} is not a row of {len(fields)} fields")
        rows.append(dict(zip(fields, cells)))
    return rows


def parse_log(output: str) -> Log:
    """The detail log of ``-L``: versions, and each card's module status and firmware."""
    head: dict[str, str] = {}
    cards: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] | None = None
    section = ""
    for line in output.splitlines():
        start = _CARD.match(line)
        if start:
            current = {"device": start.group(1), "bus_id": start.group(2).lower(), "firmware": {}, "power": {}}
            cards[current["bus_id"]] = current
            section = ""
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            section = key or section
            continue
        rail = _POWER.match(section)
        if current is None:
            head.setdefault(key, value)
        elif key == "Module status":
            current["status"] = text(value)
        elif key == "Model Number":
            current["model"] = text(value)
        elif key == "Power Draw" and rail:
            current["power"][rail.group(1).lower()] = value
        elif key == "Pending" and section == "Replaced Rows":
            current["rows_pending"] = text(value)
        else:
            firmware = _FIRMWARE.match(key)
            if firmware and text(value):
                name = (firmware.group(1) or firmware.group(2)).lower()
                current["firmware"][name] = firmware_version(value)
    attached = number(head.get("Attached AIPs"), "Attached AIPs")
    if attached is None or attached != len(cards):
        first = next((line for line in output.splitlines() if line.strip()), "")
        raise HlSmiError(
            f"the detail log beginning with {quote(first)} announces "
            f"{'no number of' if attached is None else attached} cards and describes {len(cards)}"
        )
    version = text(head.get("HL-SMI Version"))
    return Log(
        driver_version=text(head.get("Driver Version")),
        hl_smi_version=version.split()[0] if version else None,
        cards={bus_id: CardLog(**card) for bus_id, card in cards.items()},
    )


def firmware_version(value: str) -> str:
    """The image's name in a firmware line (``hl-gaudi3-1.22.0-fw-61.3.2-sec-9``), or else the whole line."""
    match = _FIRMWARE_NAME.search(value)
    return match.group(0) if match else value


def _parse_port_list(output: str) -> dict[int, str]:
    ports: dict[int, str] = {}
    for line in output.splitlines():
        if not line.strip().startswith("port"):
            continue
        match = _PORT.match(line.strip())
        if not match:
            raise HlSmiError(f"{quote(line)} is not a line of a port list")
        ports[int(match.group(1))] = match.group(2)
    if not ports:
        first = next((line for line in output.splitlines() if line.strip()), "")
        raise HlSmiError(f"a port list was expected and {quote(first)} was printed")
    return ports


def parse_ports(output: str) -> list[Port]:
    """The lines of ``-n ports``: ``port 8: external``."""
    return [Port(port, kind.lower()) for port, kind in sorted(_parse_port_list(output).items())]


def parse_links(output: str) -> dict[int, str]:
    """The lines of ``-n link``: ``port  8:<tab>UP``, as port number to ``up`` or ``down``."""
    links = {port: link.lower() for port, link in _parse_port_list(output).items()}
    for port, link in links.items():
        if link not in ("up", "down"):
            raise HlSmiError(f"port {port} is {quote(link.upper())} where UP or DOWN was expected")
    return links


def parse_counters(output: str) -> dict[int, dict[str, str]]:
    """The lines of ``-n stats``: ``port 0:`` and below it ``<tab>pcs_local_faults: 0``, as cells by port.

    Which counters there are is the tool's affair: no complete list is public.
    """
    ports: dict[int, dict[str, str]] = {}
    current: dict[str, str] | None = None
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not any(map(_PORT_HEAD.match, lines)):
        raise HlSmiError(f"counters of ports were expected and {quote(lines[0] if lines else '')} was printed")
    for line in lines:
        head = _PORT_HEAD.match(line)
        name, colon, cell = (part.strip() for part in line.rpartition(":"))
        if head:
            current = ports[int(head.group(1))] = {}
        elif colon and current is not None:
            current[name] = cell
        else:
            raise HlSmiError(f"{quote(line)} is not a line of a port's counters")
    return ports


def release_of(driver_version: str | None) -> str | None:
    """``1.23.0`` of ``1.23.0-2eae87a``: the only part which compares with a package's version."""
    match = re.match(r"\d+\.\d+\.\d+", driver_version or "")
    return match.group(0) if match else None


def require_identity(row: Mapping[str, str]) -> None:
    """Refuse a csv row that does not name a card."""
    for name, shape in MANDATORY_FIELDS.items():
        cell = row.get(name) or ""
        if not shape.fullmatch(cell):
            raise HlSmiError(f"{quote(', '.join(row.values()))} names no card: its {name} is {quote(cell)}")


def odd_cell_warnings(cells: list[OddCell]) -> list[str]:
    """One sentence for each field with a cell that cannot be read."""
    by_field: dict[str, list[OddCell]] = {}
    for cell in cells:
        by_field.setdefault(cell.field, []).append(cell)
    return [
        f"hl-smi gives {quote(first.cell, 40)} as {name} of {first.bus_id}"
        f"{f' and {len(rest)} more' if rest else ''}, where a number was expected: the value is left out."
        for name, (first, *rest) in by_field.items()
    ]
