# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A backup of this machine: a consistent copy in a folder of its own, then one snapshot of that folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from .._files import make_folder, make_in, write_file
from .._refusal import Refusal
from . import belonging, databases, manifest, tsdb
from .belonging import Snapshot
from .kinds import PROGRAMS, SERVERS, SQL, SQLITE, TSDB, Item
from .manifest import Entry, Manifest
from .moments import refuse_later
from .process import command
from .repository import ITEMS, Repository
from .tree import remove, take

#: Below the folder of the copies. Always the same, as restic compares a snapshot with the one before by its path.
COPY = "copy"


class Saved(NamedTuple):
    """What a run did, or would do."""

    changed: bool
    snapshot: str
    before: Optional[Manifest]
    now: Manifest
    missing: list[str]
    """Items that this machine does not have."""


@contextlib.contextmanager
def alone(folder: str, dry: bool) -> Iterator[str]:
    """A folder for this run's copies, gone afterwards; ``Refusal`` while another run is at work.

    A dry run leaves nothing behind, not the folders above either.
    """
    made = "" if os.path.isdir(folder) else folder
    while made and not os.path.isdir(os.path.dirname(made)):
        made = os.path.dirname(made)
    lock, copy = os.path.join(folder, "lock"), os.path.join(folder, COPY)
    # Without a lock no run has been here, so what has the name of the copies is somebody else's.
    if os.path.lexists(copy) and not os.path.lexists(lock):
        raise Refusal(f"{copy} is there, and no backup made it: give a working_folder for backups alone")
    make_folder(folder, 0o700)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(
                f"another backup or restore is at work in {folder}: wait until it has ended, then run again"
            ) from None
        remove(copy)
        make_in(None, copy, 0o700)
        try:
            yield copy
        finally:
            remove(copy)
            if dry and made:
                remove(made)
    finally:
        os.close(handle)


def apart(items: Sequence[Item], root: str, folder: str, repository: Repository) -> None:
    """Refuse an item that has the folder of the copies or the repository in it: it would be copied into itself."""
    places = {"working_folder": folder, "repository": repository.address if repository.is_local else ""}
    for item in items:
        if item.way == SQL:
            continue
        above = os.path.realpath(path_of(root, item))
        for option, place in places.items():
            if place and os.path.commonpath((above, os.path.realpath(place))) == above:
                raise Refusal(
                    f"{option} {place} lies in {path_of(root, item)}, which is backed up: give a place outside of it, "
                    "or name what is backed up more narrowly"
                )


def versions(items: Sequence[str], root: str) -> dict[str, str]:
    """Of the programs whose data the items are, as far as they run on this machine."""
    found = {}
    for name in items if root == "/" else ():
        if name in PROGRAMS:
            code, output, errors = command(PROGRAMS[name])
            number = re.search(r"\d+\.\d+(\.\d+)?", output or errors)
            if number and code == 0:
                found[name] = number.group()
        server = databases.sql_version() if name in SERVERS else ""
        if server:
            found[SERVERS[name]] = server
    return found


def path_of(root: str, item: Item) -> str:
    """Where an item lies, on a machine whose files are below ``root``."""
    return item.path if item.way == SQL else os.path.join(root, item.path.lstrip("/"))


def entries_of(item: Item, root: str, target: str) -> list[Entry]:
    """Copy one item; its entries, none where the machine does not have it."""
    source = path_of(root, item)
    try:
        if item.way == SQL:
            return databases.copy_sql(source, target, item.name) if root == "/" else []
        if item.way == SQLITE:
            return databases.copy_sqlite(source, target, item.name) if os.path.lexists(source) else []
        return tsdb.copy(source, target, item.name) if item.way == TSDB else take(source, target, item.name)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(source):
            raise
        return []


def stage(items: Sequence[Item], copy: str, root: str, host: str, kinds: Sequence[str]) -> tuple[Manifest, list[str]]:
    """Copy all items below a folder, with the manifest; and the names of those that this machine does not have."""
    folder = os.path.join(copy, ITEMS)
    make_in(None, folder, 0o700)
    entries, missing = [], []
    for item in items:
        found = entries_of(item, root, os.path.join(folder, item.name))
        entries += found
        if not found:
            missing.append(item.name)
            remove(os.path.join(folder, item.name))
    if not entries:
        raise Refusal(f"{host} has nothing of {', '.join(missing)}: name the kinds that it is of")
    known = {item.name: {"path": item.path, "way": item.way} for item in items if item.name not in missing}
    now = Manifest(host, tuple(sorted(kinds)), known, versions([*known], root), tuple(sorted(entries)))
    write_file(os.path.join(copy, manifest.FILE), manifest.write(now), 0o600)
    return now, missing


def save(
    repository: Repository,
    items: Sequence[Item],
    folder: str,
    root: str,
    host: str,
    kinds: Sequence[str],
    dry: bool,
    shows: bool,
) -> Saved:
    """Add a snapshot where the newest one that is whole has another content.

    A dry run copies and compares as well, adds nothing, and leaves nothing behind. ``Refusal`` of all that keeps a
    snapshot from being whole.
    """
    repository.check()
    apart(items, root, folder, repository)
    with alone(folder, dry) as copy:
        known = repository.snapshots(host)
        mine = belonging.own(known or [], repository.cluster)
        if mine:
            refuse_later(mine[0].name, mine[0].time, time.time(), f"see to it that restic forgets {mine[0].name}")
        now, missing = stage(items, copy, root, host, kinds)
        digest = manifest.digest(now)
        newest = mine[0] if mine else None
        if newest and newest.digest == digest and not repository.lacks(newest, now):
            return Saved(False, newest.name, now, now, missing)
        before = _before(repository, newest) if shows and newest else None
        if dry:
            return Saved(True, "", before, now, missing)
        if known is None:
            repository.make()
        name = repository.add(copy, host, digest, belonging.machine_of(root))
        lacking = repository.lacks(Snapshot(name, "", host, copy, digest), now)
        if lacking:
            raise Refusal(
                f"snapshot {name} lacks {lacking[0]}: look at the disk of {folder} with restic check, and run again"
            )
    return Saved(True, name, before, now, missing)


def _before(repository: Repository, snapshot: Snapshot) -> Optional[Manifest]:
    try:
        return repository.manifest_of(snapshot)
    except Refusal:
        return None
