"""Verdicts, passports and the healing loop's record, from the folder that gaudi3.scale.health and .heal write."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from gaudi3_watch import view
from gaudi3_watch.view import Cell, View

MOST_FILES = 4000
LONGEST_FILE = 2**20
LATEST_TIME = 1e11
"""Seconds since 1970 of a time that can be true; no other number is one, as NaN."""
LONGEST_FLEET = 2**24
"""The record of the healing loop keeps thousands of decisions."""
TITLE = "Nodes"
_NUMBERS = re.compile(r"(\d+)")


def in_order(name: str) -> list[tuple[int, int, str]]:
    """A key by which gaudi-10 comes after gaudi-9."""
    return [
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in _NUMBERS.split(name)
        if part
    ]


class NodeReports:
    """The folder of reports; ``None`` where none was given."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def section(self, now: float, asked_node: str = "") -> View:
        """Nodes with their verdicts and passports; `known` has the names of all."""
        if self.folder is None:
            why = view.empty(
                "No folder of health reports was given.",
                "Run gaudi3.scale.health on the controller, and give its folder with --health.",
            )
            return view.section("nodes", TITLE, none=why)
        try:
            names = sorted(each.name for each in os.scandir(self.folder))[: 2 * MOST_FILES]
        except OSError as error:
            why = view.empty(
                f"{self.folder} cannot be read: {error.strerror}.",
                "Give the folder that gaudi3.scale.health names at its end.",
            )
            return view.section("nodes", TITLE, none=why)
        nodes = {name.removesuffix(".report.json") for name in names if name.endswith(".report.json")}
        nodes |= {name.removesuffix(".passport.json") for name in names if name.endswith(".passport.json")}
        fleet = _json(self.folder / "fleet.json", LONGEST_FLEET)
        states = fleet.get("nodes") if isinstance(fleet, dict) and isinstance(fleet.get("nodes"), dict) else {}
        assert isinstance(states, dict)
        nodes |= {str(name) for name in states}
        if not nodes:
            why = view.empty(f"{self.folder} has no report of a node.", "Run gaudi3.scale.health on the controller.")
            return view.section("nodes", TITLE, none=why)
        rows, unfit, passports = [], 0, 0
        for node in sorted(nodes, key=in_order):
            row, drains, valid = self._row(node, states.get(node), now)
            unfit, passports = unfit + drains, passports + valid
            if not asked_node or node == asked_node:
                rows.append(row)
        tiles = [
            view.tile("Nodes", f"{len(nodes):,}"),
            view.tile("Not fit for work", f"{unfit:,}", level="bad" if unfit else "good"),
            view.tile(
                "Passports in date",
                f"{passports:,}",
                f"of {len(nodes):,}",
                "good" if passports == len(nodes) else "warn",
            ),
        ]
        listed = view.table(
            "verdicts", "Verdicts and passports", ("node", "verdict", "service", "passport", "board and driver"), rows
        )
        return {**view.section("nodes", TITLE, tiles, (), [listed]), "known": sorted(nodes, key=in_order)}

    def _row(self, node: str, state: Any, now: float) -> tuple[list[Cell], bool, bool]:
        assert self.folder is not None
        report = _json(self.folder / f"{node}.report.json")
        drains = bool(isinstance(report, dict) and report.get("drains") is True)
        passport, valid = _passport(_json(self.folder / f"{node}.passport.json"), now)
        return (
            [view.cell(node, node=node), _verdict_cell(report), _service(state), passport, _versions(report)],
            drains,
            valid,
        )


def _json(path: Path, longest: int = LONGEST_FILE) -> Any:
    """What a file holds; None where there is none, a text that says why where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return "is no regular file"
        content = file.read(longest + 1)
    if len(content) > longest:
        return f"is longer than {longest:,} bytes"
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return "is not JSON"


def _texts(value: Any) -> list[str]:
    return [view.text(each, 200) for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _verdict_cell(report: Any) -> Cell:
    if report is None:
        return view.cell("not examined", "warn")
    if not isinstance(report, dict):
        return view.cell(f"its report {report if isinstance(report, str) else 'is of another kind'}", "warn")
    said, errors = _texts(report.get("verdicts")), _texts(report.get("errors"))
    if not said and not errors:
        return (
            view.cell("healthy", "good")
            if report.get("healthy") is True
            else view.cell("its report is incomplete", "warn")
        )
    remedy = view.text(report.get("remedy") or "", 40)
    text = "; ".join([*said, *errors]) + (f" (remedy: {remedy})" if said and remedy and remedy != "none" else "")
    return view.cell(text, "bad" if report.get("drains") is True else "warn")


def _service(state: Any) -> Cell:
    if not isinstance(state, dict):
        return "\N{EN DASH}"
    name = view.text(state.get("state") or "unknown", 40)
    reason = view.text(state.get("reason") or "", 160)
    suspected = state.get("suspected")
    said = next(iter(suspected.items())) if isinstance(suspected, dict) and suspected else None
    if name == "in service" and said is not None and isinstance(said[1], dict):
        sentence = view.text(said[1].get("sentence") or "", view.SENTENCE)
        text = f"{name}, a suspect until it is tested: job {view.text(said[0], 60)}: {sentence}"
        return {"text": text, "level": "warn"}
    return view.cell(
        f"{name}: {reason}" if reason and name != "in service" else name, "good" if name == "in service" else "bad"
    )


def _passport(found: Any, now: float) -> tuple[Cell, bool]:
    """In words, and whether it is in date. Its signature is the controller's to check, which has the key."""
    if found is None:
        return view.cell("none", "warn"), False
    content = found.get("passport") if isinstance(found, dict) else None
    ends = content.get("expires_at") if isinstance(content, dict) else None
    if (
        isinstance(ends, bool)
        or not isinstance(content, dict)
        or not isinstance(ends, (int, float))
        or not abs(ends) < LATEST_TIME
    ):
        return view.cell("its file is not a passport", "warn"), False
    depth = view.text(content.get("depth") or "", 20)
    if ends <= now:
        return view.cell(f"expired {view.duration(now - ends)} ago", "warn"), False
    return view.cell(f"{depth}, for {view.duration(ends - now)}", "good"), True


def _versions(report: Any) -> str:
    found = report.get("versions") if isinstance(report, dict) else None
    if not isinstance(found, dict):
        return "\N{EN DASH}"
    return view.text(", ".join(f"{found[name]}" for name in ("board", "driver") if name in found), 120)
