# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where the secrets of a cluster lie on the controller, and what it keeps of the nodes: outside of its inventory.

Ansible reads every file below an inventory folder as an inventory, a password among them as the name of a host.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Optional

from ._refusal import Refusal

#: Names of folders that say nothing of the cluster; the folder above does.
COMMON = ("inventory", "inventories", "hosts")


def inventory_folder(sources: Sequence[str]) -> Optional[str]:
    """The folder of the first source that is a file or a folder; None where all are lists of hosts."""
    for source in sources:
        if source and "," not in source:
            path = os.path.abspath(os.path.expanduser(source))
            return path if os.path.isdir(path) else os.path.dirname(path)
    return None


def default_folder(sources: Sequence[str], environment: Mapping[str, str]) -> Optional[str]:
    """The folder of a cluster's secrets: per user, named after the inventory's folder; None where it has none.

    The same for the folder and for a file in it, and for all hosts, whichever source they come from.
    """
    return _of_the_cluster(sources, environment.get("XDG_CONFIG_HOME", ""), ".config")


def state_folder(sources: Sequence[str], environment: Mapping[str, str]) -> Optional[str]:
    """The folder of what the controller keeps of a cluster's nodes, named as that of its secrets; None likewise."""
    return _of_the_cluster(sources, environment.get("XDG_STATE_HOME", ""), os.path.join(".local", "state"))


def _of_the_cluster(sources: Sequence[str], above: str, default: str) -> Optional[str]:
    folder = inventory_folder(sources)
    if folder is None:
        return None
    real = os.path.realpath(folder)
    name = os.path.basename(real)
    if name in COMMON:
        name = os.path.basename(os.path.dirname(real)) or name
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "cluster"
    if not os.path.isabs(above):
        above = os.path.join(os.path.expanduser("~"), default)
    return os.path.join(above, "gaudi3-scale", f"{readable}-{hashlib.sha256(real.encode()).hexdigest()[:8]}")


def outside_of_the_inventory(directory: str, sources: Sequence[str], variable: str) -> str:
    """The folder, where what nodes say may be written; ``Refusal`` of one that Ansible reads as an inventory."""
    source = enclosing_source(directory, sources)
    if source is None:
        return directory
    raise Refusal(
        f"{directory} lies in the inventory {source}, where Ansible reads what nodes answered as hosts and variables: "
        f"set {variable} to a folder outside of it, or leave it out"
    )


def enclosing_source(directory: str, sources: Sequence[str]) -> Optional[str]:
    """The inventory folder in which Ansible would read ``directory``; None where it reads it in none.

    Of a source that is a file its folder counts: the next run may be given the folder, and Ansible reads group_vars and
    host_vars beside the file already. Ansible passes over entries whose names begin with a dot.
    """
    for source in sources:
        if not source or "," in source:
            continue
        path = os.path.expanduser(source)
        if not os.path.lexists(path):
            continue
        folders = {path} if os.path.isdir(path) else {os.path.dirname(os.path.abspath(path))}
        if not os.path.isdir(path):
            folders.add(os.path.dirname(os.path.realpath(path)))
        for folder in sorted(folders):
            for view in (os.path.abspath, os.path.realpath):
                below = os.path.relpath(view(os.path.expanduser(directory)), view(folder))
                parts = below.split(os.sep)
                if parts[0] != os.pardir and not any(part.startswith(".") and part != os.curdir for part in parts):
                    return source if folder == path else folder
    return None


def named_folder(sources: Sequence[str], environment: Mapping[str, str]) -> tuple[str, str]:
    """The folder of a cluster's secrets where none is set, or why there is none in a sentence without a full stop."""
    folder = default_folder(sources, environment)
    if folder is None:
        return "", (
            f"The inventory ({' '.join(sources) or 'none'}) has no folder after which one for its passwords and "
            "certificates could be named: set gaudi_secrets_dir to a folder on the controller"
        )
    return folder, ""


def misplaced(directory: str, sources: Sequence[str], environment: Mapping[str, str]) -> str:
    """Why secrets may not be kept in a folder, and what to do, in one sentence; empty where they may."""
    source = enclosing_source(directory, sources)
    if source is None:
        return ""
    return (
        f"{directory} lies in the inventory {source}, where Ansible takes passwords for names of hosts: "
        f"{advice(directory, default_folder(sources, environment))}."
    )


def holds_secrets(directory: str) -> bool:
    """Whether passwords or an authority are there."""
    return any(glob.glob(os.path.join(glob.escape(directory), name)) for name in ("*_password", "ca.crt"))


def advice(directory: str, default: Optional[str]) -> str:
    """What to do about secrets in an inventory: a command where there is something to move."""
    if default is None:
        return "move it out of there and set gaudi_secrets_dir to it"
    if not holds_secrets(directory):
        return f"set gaudi_secrets_dir to a folder outside of it, or leave it out for {default}"
    if os.path.lexists(default):
        return f"compare it with {default}, which is there too, and remove one of the two"
    above = shlex.quote(os.path.dirname(default))
    move = f"mkdir -p {above} && chmod 700 {above} && mv {shlex.quote(directory)} {shlex.quote(default)}"
    return f"move it with `{move}`, and leave gaudi_secrets_dir out or set it to the new place"
