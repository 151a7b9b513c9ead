"""Runs the sections, each with a limit of time and none able to stop the others, and makes one report of them."""

from __future__ import annotations

import datetime
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from .card_sections import on_cards
from .host import Host, Options, Result, failure
from .scrub import scrub, scrubber
from .sections import CONSENTS, SECTIONS, Section

FORMAT = 1
MAX_BYTES = 900_000
SECTION_SECONDS = 900.0
"""Most that a section of the node may take; its programs have shorter limits."""
_CUTS = (40_000, 10_000, 3_000, 1_000, 300, 100)
# Where a simulated node says that it is one: in the words of its packages, kernel log, tools and torch device.
_SIGNS = ("packages", "kernel_log", "tools", "ports_script", "python", "numbers")
_SIMULATED = re.compile(r"[^\n]*simulat[^\n]*", re.IGNORECASE)

Log = Callable[[str], None]


def examine(options: Options, host: Host | None = None, log: Log | None = None) -> dict[str, Any]:
    """The report of this machine; never raises for what is wrong with it."""
    unknown = [name for name in options.consent if name not in CONSENTS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is nothing to consent to: give one of {', '.join(CONSENTS)}.")
    host = host or Host()
    found: dict[str, dict[str, Any]] = {}
    for section in SECTIONS:
        if section.run is not None:
            if log is not None:
                log(section.title)
            found[section.key] = _limited(section, host, options)
    for key, result, seconds in on_cards(host, options, log):
        found[key] = _entry(result, seconds)
    report: dict[str, Any] = {
        "format": FORMAT,
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "asked": {"cards": options.cards, "consent": list(options.consent), "quick": options.quick},
    }
    replace = scrubber(host)
    sections = {
        section.key: {"title": section.title, **scrub(found[section.key], replace)}
        for section in SECTIONS
        if section.key in found
    }
    signs = _signs(sections)
    report["simulated"] = bool(signs)
    report["signs_of_simulation"] = signs
    report["sections"] = sections
    return _capped(report)


def write(report: dict[str, Any], path: str) -> None:
    """Put the report into a file, whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".doctor-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(dumped(report))
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def dumped(report: dict[str, Any]) -> str:
    """The report as JSON."""
    return json.dumps(report, indent=1, ensure_ascii=True) + "\n"


def _limited(section: Section, host: Host, options: Options) -> dict[str, Any]:
    """One section's entry. A read that the kernel never answers is left behind with its thread."""
    answers: list[Result] = []

    def run() -> None:
        assert section.run is not None
        try:
            answers.append(section.run(host, options))
        except Exception as error:  # whatever a machine that nobody has seen makes of it
            answers.append(failure(error))

    started = time.monotonic()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECTION_SECONDS)
    seconds = time.monotonic() - started
    if not answers:
        return {"state": "failed", "error": f"gave no answer in {SECTION_SECONDS:g} s", "seconds": seconds}
    return _entry(answers[0], seconds)


def _entry(result: Result, seconds: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"state": "fine", "seconds": round(seconds, 2)}
    if result.not_tried:
        return {**entry, "state": "not tried", "why": result.not_tried}
    if set(result.data) == {"error"}:
        return {**entry, "state": "failed", "error": result.data["error"]}
    if result.odd:
        entry.update(state="odd", odd=result.odd)
    return {**entry, "data": result.data}


def _signs(sections: dict[str, Any]) -> list[str]:
    """Lines in which the node's own tools and device say that they are simulated."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, str):
            found.extend(match.strip()[:160] for match in _SIMULATED.findall(value))
        elif isinstance(value, dict):
            for key, each in value.items():
                look(key)
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    for key in _SIGNS:
        look(sections.get(key, {}).get("data"))
    return list(dict.fromkeys(found))[:8]


def _capped(report: dict[str, Any]) -> dict[str, Any]:
    """The report, its longest texts and lists cut until it is small enough to be sent."""
    for most in _CUTS:
        if len(dumped(report)) <= MAX_BYTES:
            return report
        report = {**report, "shortened": True, "sections": _cut(report["sections"], most)}
    if len(dumped(report)) > MAX_BYTES:
        for section in report["sections"].values():
            section["data"] = "left out: the report would be too large"
    return report


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]}[{len(value) - most} characters cut]"
    if isinstance(value, dict):
        return {key: _cut(each, most) for key, each in list(value.items())[:most]}
    if isinstance(value, list):
        return [_cut(each, most) for each in value[:most]]
    return value
