# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A site's own steps before and after the phases: files of a folder, by their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from .._printable import few, printable
from .near import nearest

#: The phases that have such steps. The preflight changes nothing, so that it has none.
PHASES = ("tuning", "drivers", "fabric", "firewall", "pytorch", "monitoring", "train", "verify")
NAMES = tuple(f"{when}_{phase}.yml" for phase in PHASES for when in ("before", "after"))


def hook_file(folder: str, name: str) -> str:
    """The file of a step such as ``before_drivers``; empty where the site has none."""
    path = os.path.join(os.path.abspath(os.path.expanduser(folder)), f"{name}.yml") if folder else ""
    return path if path and os.path.isfile(path) else ""


def hooks_problem(folder: object, read: Callable[[str], Any]) -> str:
    """Why steps would not be done, in one sentence: of the folder, of a file's name, or of what a file holds.

    ``read`` gives what a file of YAML holds, and raises where it is none.
    """
    if not folder:
        return ""
    if not isinstance(folder, str):
        return f"gaudi_hooks_dir is {printable(folder, 60)}: give the path of a folder."
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        return (
            f"gaudi_hooks_dir is {printable(folder, 200)}, and {printable(path, 200)} is no folder: make or correct it."
        )
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        return f"gaudi_hooks_dir is {printable(path, 200)}, which cannot be read ({error.strerror}): correct its mode."
    return next(filter(None, (_file_problem(path, name, read) for name in names)), "")


def _file_problem(folder: str, name: str, read: Callable[[str], Any]) -> str:
    if not name.startswith(("before_", "after_")):
        return ""
    path = os.path.join(folder, name)
    shown = printable(path, 300)
    if name not in NAMES:
        meant = nearest(name, NAMES)
        return (
            f"{shown} is a step of no phase: name it "
            f"{meant or 'before_PHASE.yml or after_PHASE.yml'}; the phases are {', '.join(PHASES)}."
        )
    if not os.path.isfile(path):
        return f"{shown} is no file, so that its steps would not be done: put a file with tasks there, or remove it."
    try:
        tasks = read(path)
    except Exception as error:
        # Of any kind: what reads it is Ansible's, with the vault's password where it has one.
        said = printable(" ".join(str(error).split()), 300).rstrip(".")
        return f"{shown} cannot be read ({said}): correct it, or remove it."
    if tasks is None or (isinstance(tasks, list) and all(isinstance(each, Mapping) for each in tasks)):
        plays = [each for each in tasks or () if "hosts" in each or _imports_a_playbook(each)]
        return f"{shown} has a play in it: give its tasks alone, as in a role's tasks/main.yml." if plays else ""
    return f"{shown} is no list of tasks: write it as a role's tasks/main.yml."


def _imports_a_playbook(entry: Mapping[Any, Any]) -> bool:
    return any(str(key).rpartition(".")[2] == "import_playbook" for key in entry)


def differing_problem(folders: Mapping[str, object]) -> str:
    """Why a folder that hosts have not in common is not followed; ``folders`` are by the names of the hosts."""
    by_folder: dict[str, list[str]] = {}
    for host, folder in folders.items():
        by_folder.setdefault(str(folder or ""), []).append(host)
    if len(by_folder) < 2:
        return ""
    said = [
        f"{printable(folder, 200) if folder else 'not set'} on {few(hosts, 3)}" for folder, hosts in by_folder.items()
    ]
    return (
        f"gaudi_hooks_dir is {' and '.join(said[:3])}: give all hosts the same folder, in group_vars/all.yml, and say "
        "in its steps which hosts they are for, as in 'when: inventory_hostname in groups.monitoring'."
    )
