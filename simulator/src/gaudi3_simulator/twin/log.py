"""The cards in a text of ``hl-smi -L``: what the tool says of each."""

from __future__ import annotations

import re

_TITLE = re.compile(r"^\[\s*(\d{1,3})\] AIP \(accel(\d{1,3})\) ([0-9a-fA-F:.]{7,20})\s*$")
_SPI = re.compile(r"hl-gaudi\d?-[\w.]+-fw-[\w.-]+")
_NEVER = re.compile(r"^<\w+>$|^N/A$")


def cards(text: str) -> dict[str, dict[str, str]]:
    """Labels and values of each card by its PCI address; ``index`` is the accelerator's."""
    found: dict[str, dict[str, str]] = {}
    card: dict[str, str] | None = None
    for line in text.splitlines():
        title = _TITLE.match(line)
        if title:
            card = found.setdefault(title[3].lower(), {"index": title[2]})
        elif card is not None and ":" in line:
            label, _, value = line.partition(":")
            card.setdefault(label.strip(), value.strip())
    return found


def value(card: dict[str, str], label: str) -> str | None:
    """A value that is there and was not scrubbed."""
    said = card.get(label, "")
    return None if not said or _NEVER.match(said) else said


def preboot(card: dict[str, str], label: str = "Firmware [SPI] Version") -> str | None:
    """The name of the flashed firmware."""
    match = _SPI.search(card.get(label, ""))
    return match.group() if match else None
