# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A site's own steps before and after the phases: files of a folder, by their names."""

from __future__ import annotations

import os

from .._printable import printable
from .near import nearest

#: The phases that have such steps. The preflight changes nothing, so that it has none.
PHASES = ("tuning", "drivers", "fabric", "firewall", "pytorch", "monitoring", "train", "verify")
NAMES = tuple(f"{when}_{phase}.yml" for phase in PHASES for when in ("before", "after"))


def hook_file(folder: str, name: str) -> str:
    """The file of a step such as ``before_drivers``; empty where the site has none."""
    path = os.path.join(os.path.abspath(os.path.expanduser(folder)), f"{name}.yml") if folder else ""
    return path if path and os.path.isfile(path) else ""


def hooks_problem(folder: object) -> str:
    """Why steps would not be done, in one sentence: the folder is not there, or a file's name is none of a step."""
    if not folder:
        return ""
    if not isinstance(folder, str):
        return f"gaudi_hooks_dir is {printable(folder, 60)}: give the path of a folder."
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        return (
            f"gaudi_hooks_dir is {printable(folder, 200)}, and {printable(path, 200)} is no folder: make or correct it."
        )
    for name in sorted(os.listdir(path)):
        if name.startswith(("before_", "after_")) and name not in NAMES:
            meant = nearest(name, NAMES)
            return (
                f"{printable(os.path.join(path, name), 300)} is a step of no phase: name it "
                f"{meant or 'before_PHASE.yml or after_PHASE.yml'}; the phases are {', '.join(PHASES)}."
            )
    return ""
