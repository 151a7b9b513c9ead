"""``from-report`` and ``from-inventory``: what they print and write."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import RequestError
from . import fleet, folder, product
from .replay import differences, replay
from .reports import TABLE, open_report
from .stand import arguments

_MOST_SHOWN = 20
#: Characters of a line that are shown.
_WIDEST = 4000


def from_report(path: Path, into: Path | None, name: str, again: bool) -> tuple[list[str], int]:
    """Make a twin of a report, or with ``again`` replay its verdicts; the lines to print and the exit code.

    ``path`` may be a twin's folder, which is then replayed by the report that lies in it.
    """
    folder.check_name(name)
    if path.is_dir():
        if not again or into:
            raise RequestError(f"{path} is a folder: give a report, or the folder of a twin with --replay alone.")
        twin, state = folder.read(path)
        # The report is read anew: what a newer checkout sees in it counts.
        files = folder.make(folder.report_in(path, twin), state["node"])
        return _shown(*_replayed(files))
    report = open_report(path)
    files = folder.make(report, name)
    if again and into is None:
        return _shown(*_replayed(files))
    if into is None:
        raise RequestError("--into is missing: give a folder for the twin, or --replay to compare its verdicts alone.")
    folder.write(into, report, files)
    lines = [f"{into} is the twin of a {report.kind}", *described(files)]
    if not again:
        return _shown(lines, 0)
    more, code = _replayed(files)
    return _shown([*lines, *more], code)


def _shown(lines: Iterable[str], code: int) -> tuple[list[str], int]:
    """Lines with words of a report, none of which a terminal acts on."""
    printable = product.part("_printable").printable
    return [printable(line, _WIDEST) for line in lines], code


def described(files: dict[str, str]) -> list[str]:
    """What the twin is, what it is not, and what nothing here knows."""
    twin, state = json.loads(files[folder.TWIN]), json.loads(files[folder.STATE])
    absent = sum(each["kind"] == "card-missing" for each in twin["faults"])
    lines = [
        f"  node      {twin['node']}: {len(state['cards']) - absent} cards {twin['board']}, profile {state['profile']}",
        f"  release   {twin['release']}, driver {twin['driver'] or 'unknown'}",
        f"  system    {twin['system'] or 'unknown'}, kernel {twin['kernel'] or 'unknown'} (of the report)",
    ]
    lines += [f"  fault     {shlex.join(arguments(fault))}" for fault in twin["faults"]]
    lines += [f"  note      {note}" for note in twin["notes"]]
    unknown = json.loads(files[folder.UNKNOWN])
    lines += [f"  unknown   {path}" for path in list(unknown)[:_MOST_SHOWN]]
    if len(unknown) > _MOST_SHOWN:
        lines.append(f"  unknown   {len(unknown) - _MOST_SHOWN} more, in {folder.UNKNOWN}")
    return lines


def _replayed(files: dict[str, str]) -> tuple[list[str], int]:
    twin, state = json.loads(files[folder.TWIN]), json.loads(files[folder.STATE])
    if twin["verdicts"] is None:
        if twin["origin"]["kind"] == TABLE:
            raise RequestError("A table of hl-smi has no verdicts to compare with: give a doctor's report or a bundle.")
        raise RequestError(
            "The bundle has no health.json to compare with: make it with gaudi_support_bundle's option health."
        )
    rows = replay(twin, state)
    differing = differences(rows)
    if not rows:
        return ["report and twin have no verdict: both are healthy"], 0
    lines = [row.text() for row in rows]
    if not differing:
        return [*lines, f"report and twin have the same {len(rows)} verdicts"], 0
    names = "; ".join(f"{row.verdict.check} of {row.verdict.component} ({row.where})" for row in differing)
    return [*lines, f"report and twin differ in {len(differing)} of {len(rows)} verdicts: {names}"], 1


def from_inventory(inventory: Path, reports: Path, into: Path) -> list[str]:
    """Make a twin of every host that has a report; names hosts without one, and reports without a host."""
    wanted = fleet.hosts(inventory)
    given = fleet.reports(reports, wanted)
    made = fleet.make(wanted, given)
    if not made:
        raise RequestError(f"{reports} has no report named after a host of {inventory}, such as {wanted[0]}.json.")
    with folder.new_folder(into) as temporary:
        for name, (report, files) in made.items():
            folder.write(temporary / name, report, files)
    lines = [line for name, (_report, files) in made.items() for line in (f"{into / name}", *described(files))]
    lines += _named("hosts without a report", [host for host in wanted if host not in given])
    lines += _named("reports without a host", [path.name for host, path in given.items() if host not in wanted])
    lines.append(f"{len(made)} twins: bring them up with 'gaudi3-simulator up --twins {into}'")
    return _shown(lines, 0)[0]


def _named(what: str, names: Iterable[str]) -> list[str]:
    every = list(names)
    return [f"{what}: {', '.join(every)}"] if every else []


def nodes_of(directory: Path) -> dict[str, dict[str, Any]]:
    """The states of the nodes of a folder of twins, or of one twin's, by the nodes' names."""
    places = [directory] if (directory / folder.STATE).exists() else sorted(path for path in _folders(directory))
    found: dict[str, dict[str, Any]] = {}
    for each in places:
        _twin, state = folder.read(each)
        found[folder.check_name(state["node"])] = state
    if not found:
        raise RequestError(f"{directory} has no twin in it: make them with 'gaudi3-simulator from-inventory'.")
    return found


def _folders(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise RequestError(f"There is no folder {directory}: make twins with 'gaudi3-simulator from-inventory'.")
    return [path for path in directory.iterdir() if path.is_dir() and not path.name.startswith(".")]
