"""A report in words: one screen, and one line."""

from __future__ import annotations

import textwrap
from typing import Any

_WIDTH = 118
_NAMES = 16
SIMULATED = "This node is simulated: no time and no rate in this report says anything about a Gaudi."


def text(report: dict[str, Any]) -> str:
    """What is odd, what is fine and what was not tried."""
    sections = report["sections"]
    lines = [f"Report of {report['created']}: {_what(report)}"]
    if report["simulated"]:
        lines.append(SIMULATED)
    if report["asked"]["quick"]:
        lines.append("It was a quick look: few repetitions, small tensors.")
    for state, heading in (("odd", "Odd"), ("failed", "Failed")):
        chosen = {key: each for key, each in sections.items() if each["state"] == state}
        if chosen:
            lines += ["", heading]
            for key, each in chosen.items():
                for sentence in each.get("odd") or [each.get("error", "")]:
                    lines += _hanging(key, sentence)
    fine = [key for key, each in sections.items() if each["state"] == "fine"]
    lines += ["", "Fine", *_hanging("", ", ".join(fine) or "nothing")]
    reasons: dict[str, list[str]] = {}
    for key, each in sections.items():
        if each["state"] == "not tried":
            reasons.setdefault(each["why"], []).append(key)
    if reasons:
        lines += ["", "Not tried"]
        for why, keys in reasons.items():
            lines += _hanging("", f"{', '.join(keys)}: {why}")
    return "\n".join(lines) + "\n"


def summary(report: dict[str, Any]) -> str:
    """The report in one line."""
    sections = report["sections"]
    odd = [key for key, each in sections.items() if each["state"] in ("odd", "failed")]
    counts = {state: sum(each["state"] == state for each in sections.values()) for state in ("fine", "not tried")}
    parts = [
        _what(report),
        f"{len(odd)} odd ({', '.join(odd)})" if odd else "nothing odd",
        f"{counts['fine']} fine",
        f"{counts['not tried']} not tried",
    ]
    return "; ".join(parts)


def _what(report: dict[str, Any]) -> str:
    """Cards, driver and system in a few words."""
    sections = report["sections"]
    found = _data(sections, "cards").get("cards") or []
    driver = (_data(sections, "modules").get("loaded") or {}).get("habanalabs", {}).get("version")
    machine = _data(sections, "machine")
    system = (machine.get("system") or {}).get("PRETTY_NAME") or "unknown system"
    cards = f"{len(found)} {'simulated ' if report['simulated'] else ''}Gaudi card{'' if len(found) == 1 else 's'}"
    return f"{cards}, driver {driver or 'not loaded'}, {system}, kernel {machine.get('kernel') or 'unknown'}"


def _data(sections: dict[str, Any], key: str) -> dict[str, Any]:
    data = sections.get(key, {}).get("data")
    return data if isinstance(data, dict) else {}


def _hanging(name: str, sentence: str) -> list[str]:
    begin = f"  {name:<{_NAMES}}" if name else "  "
    return textwrap.wrap(
        " ".join(str(sentence).split()), _WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin)
    ) or [begin]
