"""Twins of all Gaudi hosts of an inventory, by reports named after the hosts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from .. import RequestError
from . import folder
from .reports import Report, open_report

GROUP = "gaudi"
#: A source of the inventory may be a program.
_SECONDS = 120
_ENDINGS = (".json", ".tar.gz", ".tgz", ".tar")


def hosts(inventory: Path) -> list[str]:
    """Hosts of the group gaudi, as Ansible reads the inventory."""
    if not inventory.is_file() and not inventory.is_dir():
        raise RequestError(f"There is no inventory {inventory}: give a file or a folder that Ansible reads.")
    beside = Path(sys.executable).with_name("ansible-inventory")
    program = str(beside) if beside.exists() else shutil.which("ansible-inventory")
    if program is None:
        raise RequestError("ansible-inventory is not on the path: activate the environment that has Ansible.")
    command = [program, "-i", str(inventory), "--list"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RequestError(
            f"ansible-inventory did not read {inventory} within {_SECONDS} seconds: run 'ansible-inventory -i "
            f"{inventory} --list' to see what it waits for."
        ) from None
    try:
        groups: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    except ValueError:
        groups = {}
    found = _members(groups, GROUP)
    if not found:
        raise RequestError(f"{inventory} has no host in group {GROUP}: give the inventory that site.yml is run with.")
    return found


def _members(groups: dict[str, Any], group: str) -> list[str]:
    """Hosts of a group and of the groups below it, each once."""
    entry = groups.get(group, {})
    found = list(entry.get("hosts", []))
    for child in entry.get("children", []):
        found += _members(groups, child)
    return list(dict.fromkeys(found))


def reports(directory: Path, wanted: Collection[str] = ()) -> dict[str, Path]:
    """Report files of a folder by the host that each is named after, of which some may be called doctor-...."""
    if not directory.is_dir():
        raise RequestError(f"There is no folder {directory}: give the folder with one report of each host.")
    found: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        ending = next((each for each in _ENDINGS if path.name.endswith(each)), None)
        if ending is None or path.name.startswith("."):
            continue
        if not path.is_file():
            raise RequestError(f"{path} has a report's name and is no file: put the report there, or move it away.")
        whole = path.name.removesuffix(ending)
        name = whole if whole in wanted else whole.removeprefix("doctor-")
        if name in found:
            raise RequestError(f"{found[name].name} and {path.name} are both of {name}: leave one of them.")
        found[name] = path
    return found


def node_name(host: str) -> str:
    """The name that a host's twin has: its first word, as nodes are named."""
    return re.sub(r"[^a-z0-9-]", "-", host.partition(".")[0].lower()).strip("-")[:63]


def make(wanted: list[str], given: dict[str, Path]) -> dict[str, tuple[Report, dict[str, str]]]:
    """Report and files of each host's twin by the twin's name. Nothing is written: one bad report stops them all."""
    names: dict[str, str] = {}
    made = {}
    for host in wanted:
        name = folder.check_name(node_name(host))
        if name in names:
            raise RequestError(f"{names[name]} and {host} would both be called {name}: rename one in the inventory.")
        names[name] = host
        if host in given:
            report = open_report(given[host])
            made[name] = report, folder.make(report, name)
    return made
