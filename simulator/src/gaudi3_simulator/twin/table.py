"""The cards in the table that ``hl-smi`` prints without options, in the forms that were published."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: How the table begins, some lines of a terminal before it left out.
_BEGIN = re.compile(r"^\+-{60,}\+\s*\n\| HL-SMI Version:\s+(\S+)\s*\|", re.M)
_DRIVER = re.compile(r"^\| Driver Version:\s+(\d[\w.-]*)\s*\|", re.M)
_ADDRESS = r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_MEMORY = r"(\d+)Mi[bB]\s*/\s*(\d+)Mi[bB]"
_CARD = re.compile(
    rf"^\|\s*(\d{{1,3}})\s+(HL-\w+)\s+N/A\s*\|\s*({_ADDRESS})\s+N/A\s*\|\s*(\d+|N/A)\s*\|[ \t]*\n"
    rf"\|\s*N/A\s+(\d+)C\s+\S+\s+(\d+)W\s*/\s*(\d+)W\s*\|\s*{_MEMORY}\s*\|\s*(\d+)%",
    re.M,
)


@dataclass(frozen=True)
class Row:
    """One card: °C, W, MiB and percent, as the table has them; its power is that of both rails."""

    index: int
    product: str
    bus_id: str
    temperature: int
    power: int
    power_max: int
    memory_used: int
    memory_total: int
    utilization: int
    events: int = 0
    """Of the column of uncorrectable errors, which later releases call events."""


def is_table(content: bytes) -> bool:
    """Whether a file is such a table, or begins with one."""
    return _BEGIN.search(content[:4096].decode("utf-8", "replace").replace("\r\n", "\n")) is not None


def driver(text: str) -> str | None:
    """The driver's version in its heading."""
    match = _DRIVER.search(text)
    return match[1] if match else None


def rows(text: str) -> list[Row]:
    """The cards, in their order."""
    return [_row(match) for match in _CARD.finditer(text.replace("\r\n", "\n"))]


def _row(match: re.Match[str]) -> Row:
    temperature, power, power_max, used, total, utilization = (int(match[place]) for place in range(5, 11))
    events = int(match[4]) if match[4].isdigit() else 0
    index, product, bus_id = int(match[1]), match[2], match[3].lower()
    return Row(index, product, bus_id, temperature, power, power_max, used, total, utilization, events)
