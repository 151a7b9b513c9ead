# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Who wrote a service's files: a record on the host of what the collection wrote there.

The record is written before the files and again after them. Between the two, an interrupted run leaves it open for
these files, and each of them counts as the collection's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .._files import make_folder, write_file
from .._refusal import Refusal


@dataclass
class Record:
    """What the collection wrote for one service."""

    files: dict[str, str] = field(default_factory=dict)
    """Digests by path; empty for a file that was not there when the record was made."""
    pending: list[str] = field(default_factory=list)
    """Paths of files that were to be written, and the record of it has not followed yet."""
    backups: dict[str, str] = field(default_factory=dict)
    """By the path of a file that somebody else wrote: where it was kept when it was taken over."""
    arguments: list[str] = field(default_factory=list)
    """Arguments of the service that was taken over."""
    installed_before: bool = False
    """The package was in use before the collection came."""
    authority: str = ""
    nodes: dict[str, str] = field(default_factory=dict)
    """Of the cluster that is watched: a digest of its authority, and the address of each node."""


def read(path: str) -> Record | None:
    """The record, or None where there is none. A damaged one is refused: nobody knows whose the files are."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        sound = isinstance(found, dict) and isinstance(found.get("files"), dict)
        if not sound or not isinstance(found.get("pending", []), list):
            raise ValueError("it is no record")
        return Record(**{key: found[key] for key in Record.__dataclass_fields__ if key in found})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise Refusal(
            f"{path}, the record of what was written, cannot be read ({error}): move it away, and run again."
        ) from None


def write(path: str, record: Record) -> None:
    """Write the record, for root alone: arguments may hold passwords."""
    make_folder(os.path.dirname(path))
    write_file(path, json.dumps(vars(record), indent=1, sort_keys=True) + "\n", 0o600)


def digest(path: str) -> str:
    """The digest of a file's content; empty where there is no file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        return ""


def foreign(paths: Iterable[str], record: Record | None, packaged: Mapping[str, str]) -> list[str]:
    """The files that are there, that the collection did not write, and that are not as their package brought them.

    ``packaged`` has the MD5 sums of a package's files of configuration.
    """
    return [path for path in paths if os.path.lexists(path) and not _known(path, record, packaged)]


def _known(path: str, record: Record | None, packaged: Mapping[str, str]) -> bool:
    if record is not None and path in record.files and (path in record.pending or record.files[path] == digest(path)):
        return True
    return path in packaged and packaged[path] == _md5(path)


def _md5(path: str) -> str:
    """As dpkg keeps it; it protects nothing."""
    try:
        with open(path, "rb") as file:
            return hashlib.new("md5", file.read(), usedforsecurity=False).hexdigest()
    except OSError:
        return ""


def other_cluster(record: Record | None, authority: str, nodes: Mapping[str, str]) -> list[str]:
    """The nodes that another cluster has this host watch; none where it is this cluster's host, or nobody's.

    It is the same cluster where its authority is the same, or where a node has kept its address.
    """
    if record is None or not record.nodes or not nodes:
        return []
    same = bool(authority) and authority == record.authority
    if same or set(record.nodes.values()) & set(nodes.values()):
        return []
    return sorted(record.nodes)


#: Where systemd looks for units before the folder of the packages.
UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system")


def foreign_units(unit: str, folders: Iterable[str]) -> list[str]:
    """Files beside a package's that run something else under the unit's name: the unit itself, or a drop-in."""
    found = []
    for folder in folders:
        own = os.path.join(folder, unit)
        found += [own] if os.path.lexists(own) else []
        drop_ins = f"{own}.d"
        for name in sorted(os.listdir(drop_ins)) if os.path.isdir(drop_ins) else []:
            if name.endswith(".conf") and _runs_something(os.path.join(drop_ins, name)):
                found.append(os.path.join(drop_ins, name))
    return found


def _runs_something(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            keys = [line.partition("=")[0].strip() for line in file]
    except OSError:
        return True
    return any(key in ("ExecStart", "EnvironmentFile", "Environment", "User") for key in keys)


def restored(backups: Mapping[str, str]) -> list[str]:
    """Put the files that were taken over back in their places; the paths."""
    there = [path for path, kept in backups.items() if os.path.lexists(kept)]
    for path in there:
        os.replace(backups[path], path)
    return there


def absent(record: Record) -> tuple[list[str], list[str]]:
    """The recorded files that are as they were written, and those that somebody has changed since."""
    there = [path for path in record.files if os.path.lexists(path)]
    ours = [path for path in there if path in record.pending or record.files[path] == digest(path)]
    return ours, [path for path in there if path not in ours]
