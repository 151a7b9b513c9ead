"""Values of a report, whose form nobody warrants: each is asked for what it should be, and is nothing otherwise."""

from __future__ import annotations

import re
from typing import Any

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def output(said: Any) -> str:
    """The output of a program as the doctor keeps it."""
    text = said.get("output") if isinstance(said, dict) else None
    return text if isinstance(text, str) else ""


def dicts(values: Any) -> list[dict[str, Any]]:
    """The mappings in a list; none where it is no list."""
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """A mapping, empty where it is none."""
    return value if isinstance(value, dict) else {}


def is_address(value: Any) -> bool:
    """Whether it is the PCI address of a card."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value.lower()) is not None


def text(value: Any) -> str | None:
    """A text, None where it is none."""
    return value if isinstance(value, str) else None


def number(*values: Any) -> int | None:
    """The first that is a small whole number."""
    return next((int(str(each)) for each in values if re.fullmatch(r"\d{1,4}", str(each))), None)
