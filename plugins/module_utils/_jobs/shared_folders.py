# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a folder lies on a file system of the network, and which: nodes that have the same one share it."""

from __future__ import annotations

import os
import pwd
import re
from typing import Optional

#: Types of mounts whose source is the same for all who share it.
NETWORK = ("9p", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "virtiofs", "wekafs")


def network_source(path: str, table: str) -> Optional[str]:
    """What is mounted at ``path``, by the text of /proc/mounts; None for a file system of the node's own."""
    found: tuple[int, Optional[str]] = (-1, None)
    for line in table.splitlines():
        source, point, kind = [_plain(word) for word in [*line.split(), "", "", ""][:3]]
        if point and os.path.commonpath([point, path]) == point and len(point) >= found[0]:
            found = (len(point), source if kind.partition(".")[2] in NETWORK or kind in NETWORK else None)
    return found[1]


def mounts() -> str:
    """The text of /proc/mounts; empty where it cannot be read."""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:
        return ""


def uid_of(user: str) -> Optional[int]:
    """A user's number; None where there is no such user."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def _plain(word: str) -> str:
    """A word of /proc/mounts, in which white space is written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)
