"""The twin on disk. ``state.json`` is the simulator's own file of a node; the others are what that has no place for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import RequestError
from ..node import board, faults
from . import recorded
from .facts import facts_of, missing, state
from .inverse import faults_of
from .reports import DOCTOR, MAX_BUNDLE, TABLE, Report, open_report, read_file
from .stand import MEMORY

FORMAT = 1
STATE, TWIN, UNKNOWN = "state.json", "twin.json", "unknown.json"
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
#: What a node gets by command, once it is up: files, a process, a load of the driver.
BY_COMMAND = (*faults.MODULE_FILES, *faults.NETWORK_FILES, faults.DEVICE_ACQUIRED, *faults.ENDS_WITH_LOAD)


def make(report: Report, name: str) -> dict[str, str]:
    """The files of the twin of a report, by name."""
    facts = facts_of(report, name)
    with tempfile.TemporaryDirectory(prefix="gaudi3-report-", dir=MEMORY) as node:
        said = recorded.verdicts(report, Path(node), facts.board)
    wanted = _cards_wanted(said or [], len(facts.cards))
    gaps = missing(facts, wanted)
    found, left = faults_of(said or [], gaps)
    absent = [{"kind": faults.CARD_MISSING, "card": index} for index in gaps]
    found += [each for each in absent if each not in found]
    held = state(facts, name, wanted)
    held["faults"] = [each for each in found if each["kind"] not in BY_COMMAND]
    if said is None:
        lacks = "it is a table of hl-smi" if report.kind == TABLE else "the bundle has no health.json"
        facts.notes.append(f"{lacks}, so no fault is known and no verdict can be compared")
    for verdict in left:
        facts.notes.append(
            f"no fault of the simulator shows {verdict.check} of {verdict.component}: {verdict.evidence}"
        )
    twin = {
        "format": FORMAT,
        "node": name,
        "origin": {
            "kind": report.kind,
            "sha256": hashlib.sha256(report.content).hexdigest(),
            "created": facts.created,
            "simulated": facts.simulated,
        },
        "board": facts.board,
        "release": facts.release,
        "driver": facts.driver,
        "kernel": facts.kernel,
        "system": facts.system,
        "translated": facts.translated or any(each.check == "iommu" for each in said or []),
        "ports_up": facts.ports_up,
        "flow_control": facts.flow_control or any(each["kind"] == faults.PORT_PFC for each in found),
        "settings": facts.settings,
        "measured": facts.measured,
        "faults": found,
        "verdicts": None if said is None else [asdict(each) for each in said],
        "not_simulated": [asdict(each) for each in left],
        "notes": facts.notes,
    }
    return {
        STATE: json.dumps(held, indent=1) + "\n",
        TWIN: json.dumps(twin, indent=1) + "\n",
        UNKNOWN: json.dumps(facts.unknown, indent=1, sort_keys=True) + "\n",
    }


def _cards_wanted(said: list[Any], there: int) -> int:
    """How many cards the node should have: what a verdict on their number says, else those that are there."""
    for verdict in said:
        match = re.match(r"\d+ of (\d) cards", verdict.evidence) if verdict.check == "card-count" else None
        if match:
            return min(max(there, int(match[1])), board.MAX_CARDS)
    return there


def report_name(kind: str) -> str:
    """What the report is called in the twin's folder."""
    return {DOCTOR: "report.json", TABLE: "report.txt"}.get(kind, "report.tar.gz")


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which has its name when all is in it, or never; ``RequestError`` where it cannot be made."""
    if folder.exists():
        raise RequestError(f"{folder} is there already: give another --into, or remove it.")
    if not folder.parent.is_dir():
        raise RequestError(f"There is no folder {folder.parent}: make it first, or give another --into.")
    temporary: Path | None = None
    try:
        # Under a name of this process: one that was killed in between is in nobody's way.
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(folder)
    except OSError as error:
        raise RequestError(f"{folder} cannot be written ({error.strerror}): give another --into.") from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def write(folder: Path, report: Report, files: dict[str, str]) -> None:
    """Put a twin into a new folder, whole or not at all; the report lies beside it."""
    with new_folder(folder) as temporary:
        (temporary / report_name(report.kind)).write_bytes(report.content)
        for name, text in files.items():
            (temporary / name).write_text(text)
        for path in temporary.iterdir():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A twin and the state of its node; ``RequestError`` where the folder is none."""
    none = RequestError(f"{folder} is no twin: make one with 'gaudi3-simulator from-report'.")
    try:
        twin, held = (json.loads(read_file(folder / name, MAX_BUNDLE) or b"") for name in (TWIN, STATE))
    except (OSError, ValueError, RecursionError):
        raise none from None
    if not isinstance(twin, dict) or twin.get("format") != FORMAT:
        raise RequestError(f"{folder} is a twin of another version: make it again with 'gaudi3-simulator from-report'.")
    kind = twin["origin"].get("kind") if isinstance(twin.get("origin"), dict) else None
    if not isinstance(kind, str) or not isinstance(held, dict) or not isinstance(held.get("node"), str):
        raise none
    return twin, held


def report_in(folder: Path, twin: dict[str, Any]) -> Report:
    """The report that a twin was made of."""
    return open_report(folder / report_name(twin["origin"]["kind"]))


def check_name(name: str) -> str:
    """A name that a node can have."""
    if not NAME.fullmatch(name):
        raise RequestError(f"--node was '{name}': give small letters, digits and '-', as in a host name.")
    return name
