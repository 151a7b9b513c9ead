"""Spans of time as people write them: 90m, 12h, 2d."""

from __future__ import annotations

import re

from gaudi3_deploy.errors import UsageError

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """Seconds of `12h`, `90m` or `1h30m`. Raises UsageError for anything else, and for none at all."""
    found = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not found or "".join(number + unit for number, unit in found) != text:
        raise UsageError(f"The time {text!r} is not understood: write it as 90m, 12h or 2d.")
    total = sum(float(number) * SECONDS[unit] for number, unit in found)
    if not total:
        raise UsageError(f"The time {text!r} is none at all: give a longer one, such as 12h.")
    return total


def text(of: float) -> str:
    """`1h30m` of 5400 seconds."""
    minutes = round(of / 60)
    return (f"{minutes // 60}h" if minutes >= 60 else "") + (f"{minutes % 60}m" if minutes % 60 or minutes < 60 else "")
